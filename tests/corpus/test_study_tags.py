"""Rosters: order kept, mistakes refused with file and line."""

from __future__ import annotations

import pytest

from hpcagent_bench import study_tags
from hpcagent_bench.errors import UserError


def test_quickstart_names_the_first_eight():
    kernels = study_tags.load_tag("quickstart")
    assert len(kernels) == 8
    assert {"tsvc_2_vtvtv", "tsvc_2_s311", "tsvc_2_s115", "tsvc_2_s231", "ext_war_unit"} < set(kernels)
    assert {"argmax_with_index", "fuse_diamond", "wf_triangular"} < set(kernels)


def test_order_comments_and_blank_lines(tmp_path):
    (tmp_path / "mine.txt").write_text("# mine\nwf_triangular\n\n  tsvc_2_s311  # sum\n")
    assert study_tags.load_tag("mine", tmp_path) == ("wf_triangular", "tsvc_2_s311")
    assert study_tags.known_tags(tmp_path) == ("mine",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tsvc_2_s311\ntsvc_2_s31\n", r"bad\.txt:2: kernel 'tsvc_2_s31' does not exist; did you mean"),
        ("tsvc_2_s311\n\ntsvc_2_s311\n", r"bad\.txt:3: .* listed twice, first in line 1"),
        ("# nothing\n", "names no kernel"),
    ],
)
def test_mistakes(text, message, tmp_path):
    (tmp_path / "bad.txt").write_text(text)
    with pytest.raises(UserError, match=message):
        study_tags.load_tag("bad", tmp_path)


def test_unknown_tag():
    with pytest.raises(UserError, match=r"tag 'quikstart' does not exist in .*; did you mean 'quickstart'"):
        study_tags.load_tag("quikstart")
