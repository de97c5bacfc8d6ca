"""A device included as a header: endless, empty or waiting for input; the build ends, the judge goes on."""

from __future__ import annotations

import pytest
from attack_rig import Rig, refused, version


def test_an_endless_device_runs_into_a_limit(judge: Rig) -> None:
    judge.context.settings.timeouts.compile_s = 1.0
    refused(
        judge.attack(version("HONEST;", '#include "/dev/zero"')), "build_error", "compile time limit|memory"
    )
    judge.context.settings.timeouts.compile_s = 10.0


@pytest.mark.parametrize("device", ["/dev/stdin", "/dev/fd/0", "/dev/null"])
def test_an_empty_device_adds_nothing(judge: Rig, device: str) -> None:
    assert judge.preview(version("HONEST;", f'#include "{device}"')).status in ("ok", "build_error")


@pytest.mark.parametrize("device", ["/dev/tty", "/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/fd/63"])
def test_other_devices_are_not_there(judge: Rig, device: str) -> None:
    refused(judge.attack(version("HONEST;", f'#include "{device}"')), "build_error", "error")


def test_twin_that_reads_no_device_is_accepted(judge: Rig) -> None:
    judge.accepts(version("HONEST;", "/* /dev/zero */"))
