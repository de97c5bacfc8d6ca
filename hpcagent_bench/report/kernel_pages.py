"""What ``kernels list`` and ``kernels show`` print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hpcagent_bench.corpus.manifest import PRESETS


def console() -> Console:
    """Standard output: a terminal's width for tables, wide ones in a file, and text as long as it is."""
    plain = Console(highlight=False, soft_wrap=True)
    return plain if plain.is_terminal else Console(highlight=False, soft_wrap=True, width=160)


def print_list(rows: Sequence[dict[str, Any]], console: Console) -> None:
    """A table of kernels, one a row."""
    table = Table(box=None, pad_edge=False)
    for column in ("kernel", "dwarf", "level", "title", "XL", "tags"):
        table.add_column(column, no_wrap=column == "kernel", justify="right" if column == "XL" else "left")
    track = ""
    for row in rows:
        if row["track"] != track:
            track = row["track"]
            table.add_row(f"[bold]{track}[/]")
        table.add_row(
            f"  {row['kernel']}",
            row["dwarf"].replace("_", " "),
            str(row["level"]),
            escape(row["title"]),
            size(row["xl_bytes"]),
            " ".join(row["tags"]),
        )
    console.print(table)
    console.print(f"{len(rows)} kernels")


def print_page(page: dict[str, Any], console: Console) -> None:
    """Everything about one kernel."""
    console.print(f"[bold]{page['kernel']}[/]  {escape(page['title'])}")
    console.print(escape(page["mathematics"]))
    console.print(
        f"{page['track']}, {page['dwarf'].replace('_', ' ') or 'no dwarf'}, level {page['level']}"
        + (f", tags {' '.join(page['tags'])}" if page["tags"] else "")
    )
    if page["source"]:
        console.print(f"source: {escape(page['source'])}")
    console.print()
    console.print(escape(page["reference"].rstrip()))
    console.print()
    console.print(_sizes(page))
    console.print(_counted(page["operations"]))
    if any(page["configs"]):
        console.print(f"configurations: {'; '.join(_assignments(config) for config in page['configs'])}")
    console.print()
    console.print(_arguments(page["binding"]))
    console.print()
    for loop in page["loops"]:
        verdict = "[green]parallel[/]" if loop["parallel"] else "sequential"
        console.print(f"line {loop['line']}, loop {loop['index']}: {verdict}: {escape(loop['reason'])}")
    console.print()
    for output, band in page["tolerances"].items():
        console.print(f"tolerance of {output} at XL: {_band(band)}")
    for language, state in page["references"].items():
        console.print(f"reference in {language}: {escape(state)}")
    console.print(f"fingerprint {page['fingerprint']}")
    console.print(f"folder {page['folder']}")


def _sizes(page: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False)
    symbols = sorted(page["sizes"]["XL"])
    counts = page["operations"]
    kinds = [k for k in ("flops", "integer operations") if counts.get("XL", {}).get(k)]
    for column in ("rung", *symbols, "bytes", *kinds):
        table.add_column(column, justify="right")
    for preset in PRESETS:
        table.add_row(
            preset,
            *(str(page["sizes"][preset][symbol]) for symbol in symbols),
            size(page["bytes"][preset]),
            *(f"{counts[preset][kind]:.4g}" for kind in kinds),
        )
    return table


def _counted(operations: dict[str, Any]) -> str:
    if operations["counted"] == "not":
        return f"operations not counted: {escape(operations['reason'])}"
    if operations["counted"] == "exactly":
        return "operations counted exactly, as a polynomial of the sizes"
    return "operations counted at S and scaled with the bytes: they depend on the data or are no polynomial"


def _arguments(binding: dict[str, Any]) -> str:
    lines = [f"void {binding['symbol']}(  // {binding['abi']}"]
    for arg in binding["args"]:
        shape = f"[{', '.join(arg['shape'])}]" if "shape" in arg else ""
        lines.append(f"    {arg['name']}{shape}: {arg['dtype']} {arg.get('role', 'input')}")
    return escape("\n".join([*lines, "    workspace, workspace_size)"]))


def _band(band: dict[str, Any]) -> str:
    if band["rule"] == "exact":
        return "exact"
    if band["rule"] == "ungradeable":
        return escape(band["reason"])
    return (
        f"rtol {band['rtol']:g}, atol {band['atol']:g}, reassociation over {band['length']} terms "
        f"({band['rule']})"
    )


def _assignments(config: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in config.items())


def size(count: int) -> str:
    """Bytes in the largest unit that keeps them above one."""
    value, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.3g} {unit}"
