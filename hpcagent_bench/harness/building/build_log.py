"""What a submission may read of its compiler's messages: only what speaks of the submission itself."""

from __future__ import annotations

import re

LOG_MAX = 64 * 1024
"""Bytes of a build log that is kept."""

_LOCATED = re.compile(r"(?P<file>[^\s:][^:]*|\{standard input\})(:\d+)+(:|$)")
_ABOUT = re.compile(r"(?P<file>[^\s:][^:]*|\{standard input\}): (In|At|Assembler messages|Warning|Error)")
_INCLUDED = re.compile(r"(?:In file included|\s+)\s*from (?P<file>[^\s:][^:]*)(:\d+)+[:,]")
_LINKER = re.compile(r"(?:\S*/)?(?:ld|collect2|ld\.\w+)(?:\.exe)?: (?P<rest>.*)")
_DRIVER = re.compile(
    r"(?:\S*/)?(?P<tool>gcc|g\+\+|gfortran|cc1|cc1plus|f951|as|clang|clang\+\+): (?P<rest>.*)"
)
_OBJECT = re.compile(r"/tmp/\w+\.o")
_PATH = re.compile(r"(?<![\w<])/(?:[\w.+-]+/)+")


def _mentioned(line: str, source: str) -> bool | None:
    """Whether a line that names a file names the submission; None when it names none."""
    for form in (_INCLUDED, _LOCATED, _ABOUT):
        found = form.match(line)
        if found:
            return found["file"].rpartition("/")[2] == source or found["file"] == "{standard input}"
    return None


def filtered(log: str, source: str) -> str:
    """``log`` with every message about another file than ``source`` dropped, with the lines it quotes.

    Folders are cut off the paths that remain: neither the judge's places nor its files can be read from it.
    A last line says that something was left out.
    """
    kept: list[str] = []
    about_source, dropped = True, False
    for line in log.splitlines():
        tool = _LINKER.match(line) or _DRIVER.match(line)
        if tool and not line.startswith(source):
            name = tool.groupdict().get("tool") or "ld"
            kept.append(f"{name}: {_PATH.sub('', _OBJECT.sub('object', tool['rest']))}")
            continue
        mentioned = _mentioned(line, source)
        if mentioned is not None:
            about_source = mentioned
        if about_source:
            kept.append(_PATH.sub("", line) if mentioned is not None else line)
        dropped = dropped or not about_source
    if dropped:
        kept.append(f"{source}: error or warning in another file, which is not shown")
    text = "\n".join(kept)
    return text if len(text) <= LOG_MAX else text[:LOG_MAX] + "\n[the rest of the log is left out]"
