"""What a source contains that a reader of its grade may want to know. Recorded, never a reason to refuse.

Results decide, not style: these constructs are allowed. Their notes may be escaped (macros, spliced lines,
assembled names); comments and strings are left out as far as that is easy.
"""

from __future__ import annotations

import re

LIMIT = 8 << 20
"""Characters of a source that are looked at."""

_C_FAMILY = {
    "unsafe-math pragma or attribute": re.compile(
        r"#\s*pragma\s+(GCC\s+optimize|STDC\s+FP_CONTRACT|clang\s+fp|float_control|fp_contract)"
        r"|\boptimize\s*\(|\bfast-math\b|\bfast_math\b"
    ),
    "inline assembly": re.compile(r"\b(__asm__|__asm|asm)\b\s*(volatile|__volatile__|inline|goto|\(|\{)"),
    "vendor intrinsics": re.compile(
        r"\b_mm(256|512)?_\w+\s*\(|\b__builtin_ia32_\w+|\bv(ld|st|add|mul|fma)\w*_f64\b"
    ),
    "code the sanitizer is kept from": re.compile(
        r"\bno_sanitize\w*|\bno_address_safety_analysis\b|\bdisable_sanitizer_instrumentation\b"
    ),
    "a question whether a sanitizer runs": re.compile(
        r"__SANITIZE_\w+|__has_feature\s*\(\s*\w*sanitizer\b|__(asan|ubsan|lsan)_\w+"
    ),
    "code before or after the calls": re.compile(
        r"\b(constructor|destructor|init_priority)\b\s*[(),\]]|\batexit\s*\("
    ),
    "a clock or a processor's choice": re.compile(
        r"\b(clock_settime|sched_setaffinity|pthread_setaffinity_np|setpriority|prctl|syscall)\s*\("
    ),
}
_STRINGS = {
    "a file built in": re.compile(r"\.incbin|\.include\b|#\s*embed\b"),
    "an include by its whole path": re.compile(r"#\s*include(_next)?\s*[<\"]\s*(/|\.\./)"),
}
_FORTRAN = {
    "a directive of a compiler": re.compile(r"^[ \t]*!(gcc|dir|dec)\$", re.IGNORECASE | re.MULTILINE),
    "an include by its whole path": re.compile(
        r"^[ \t]*(#[ \t]*)?include[ \t]*['\"<]\s*(/|\.\./)", re.IGNORECASE | re.MULTILINE
    ),
}
_PYTHON = {
    "unsafe math for numba": re.compile(r"\bfastmath\s*=(?!\s*False\b)"),
    "code of another language": re.compile(r"\b(ctypes|cffi|llvmlite|intrinsic|inline_asm)\b"),
    "a process or a thread of its own": re.compile(
        r"\b(subprocess|multiprocessing|threading|concurrent|os\.fork)\b"
    ),
}

_C_TOKENS = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)


def notes(source: str, language: str) -> list[str]:
    """One line per kind of construct found, with the line of its first place."""
    text = source[:LIMIT].replace("\\\r\n", "\\\n").replace("\\\n", "")
    if language == "python":
        return _found(_PYTHON, text)
    if language == "fortran":
        return _found(_FORTRAN, text)
    bare = _C_TOKENS.sub(_blank, text)
    uncommented = _C_TOKENS.sub(lambda token: _blank(token) if token[0][0] == "/" else token[0], text)
    return [*_found(_C_FAMILY, bare), *_found(_STRINGS, uncommented)]


def _blank(token: re.Match[str]) -> str:
    """As many lines as a comment or string has, and nothing else; the argument of an attribute stays."""
    inner = token[0]
    if inner[0] == '"' and re.fullmatch(r"\"[\w-]*(sanitize|fast-?math|optimize)[\w-]*\"", inner):
        return inner[1:-1]
    return "\n" * inner.count("\n") or " "


def _found(wanted: dict[str, re.Pattern[str]], text: str) -> list[str]:
    hits = ((name, pattern.search(text)) for name, pattern in wanted.items())
    return [f"{name} (line {text.count(chr(10), 0, hit.start()) + 1})" for name, hit in hits if hit]
