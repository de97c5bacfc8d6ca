"""The results database (SQLite): what is recorded, how it is written, how copies are merged.

One schema (schema.sql) serves a judge's shard, a job's results and a run's dataset. A grade is committed
before it is answered; merging joins on natural keys and can be repeated.
"""

from __future__ import annotations

from hpcagent_bench.results_collapse import collapse_finals
from hpcagent_bench.results_file import VERSION, create, journal_mode, open_ro, open_rw, transaction
from hpcagent_bench.results_merge import MergeReport, merge
from hpcagent_bench.results_record import SetupConflict, next_call_index, record
from hpcagent_bench.results_rows import ADHOC, SUBMIT_LIKE, Cell, Episode, Grade, Setup, Source, now_ms

__all__ = [
    "ADHOC",
    "SUBMIT_LIKE",
    "VERSION",
    "Cell",
    "Episode",
    "Grade",
    "MergeReport",
    "Setup",
    "SetupConflict",
    "Source",
    "collapse_finals",
    "create",
    "journal_mode",
    "merge",
    "next_call_index",
    "now_ms",
    "open_ro",
    "open_rw",
    "record",
    "transaction",
]
