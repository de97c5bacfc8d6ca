-- One schema for a judge's shard, a job's results and a run's or study's dataset.
-- *_ms: UTC epoch milliseconds. *_ns: nanoseconds. JSON columns hold text. NULL means unknown, never zero.
-- The natural keys (setup; job+label+rep; episode+kernel+ts_ms+kind; grade+cell) are what a merge joins on.

CREATE TABLE setups (
    setup       TEXT NOT NULL PRIMARY KEY CHECK (setup <> ''),
    study       TEXT,
    model       TEXT,                                   -- NULL: no model (a compiler or another fixed program)
    language    TEXT NOT NULL,
    device      TEXT NOT NULL CHECK (device IN ('cpu', 'cpu-multinode', 'gpu', 'gpu-multinode')),
    packet      TEXT NOT NULL DEFAULT '',               -- sorted, joined by '+'
    harness     TEXT NOT NULL DEFAULT 'claude',
    temperature REAL DEFAULT 1.0
) STRICT;

CREATE TABLE episodes (
    id                       INTEGER PRIMARY KEY,
    setup                    TEXT NOT NULL REFERENCES setups (setup),
    job                      INTEGER,
    label                    TEXT NOT NULL CHECK (label <> ''),  -- <setup>.n<node>.p<problem>.w<worker>[.s<slot>]
    rep                      INTEGER NOT NULL DEFAULT 1 CHECK (rep >= 1),
    slot                     INTEGER NOT NULL DEFAULT 1 CHECK (slot >= 1),
    kernel                   TEXT,
    result                   TEXT,
    returncode               INTEGER,
    relaunches               INTEGER NOT NULL DEFAULT 0 CHECK (relaunches >= 0),
    final_attempt_start_ms   INTEGER,
    cancelled                INTEGER CHECK (cancelled IN (0, 1)),
    turns                    INTEGER,
    wall_ms                  INTEGER,
    api_ms                   INTEGER,
    fresh_input_tokens       INTEGER,
    cached_input_tokens      INTEGER,
    output_tokens            INTEGER,
    thinking_tokens          INTEGER,                   -- a client's estimate; never added to a cost
    billed_tokens            INTEGER,                   -- raw usage sum; never reported as a cost
    effective_tokens         INTEGER,
    crashed_billed_tokens    INTEGER,
    crashed_effective_tokens INTEGER,
    output_source            TEXT                       -- message_delta | result | usage_jsonl | none
) STRICT;
CREATE UNIQUE INDEX episodes_key ON episodes (coalesce(job, -1), label, rep);
CREATE INDEX episodes_setup ON episodes (setup, kernel, slot);

CREATE TABLE sources (
    hash TEXT NOT NULL PRIMARY KEY CHECK (length(hash) = 64),  -- sha256 of the UTF-8 text
    text TEXT NOT NULL
) STRICT;

CREATE TABLE grades (
    id                  INTEGER PRIMARY KEY,
    episode_id          INTEGER NOT NULL REFERENCES episodes (id) ON DELETE CASCADE,
    kernel              TEXT NOT NULL CHECK (kernel <> ''),
    ts_ms               INTEGER NOT NULL CHECK (ts_ms > 0),
    kind                TEXT NOT NULL
                        CHECK (kind IN ('score', 'submit', 'promoted', 'harvested', 'probe', 'final', 'regrade')),
    of_grade_id         INTEGER REFERENCES grades (id) ON DELETE CASCADE,
    request_id          TEXT,
    optimizer           TEXT,
    call_index          INTEGER CHECK (call_index >= 1),
    tokens_so_far       INTEGER,
    preset              TEXT,
    datatype            TEXT,
    source_mode         TEXT,
    baseline            TEXT,
    grading_protocol    TEXT,
    timing_reduction    TEXT,
    baseline_policy     TEXT,
    denominator         TEXT CHECK (denominator IN (
                            'numpy', 'numba', 'c', 'c-autopar', 'cpp-autopar', 'fortran-autopar', 'vendored',
                            'best-of(numba,c)', 'best-of(numba,c,c-autopar)',
                            'torch-autotune', 'torch-autotune-cpu', 'torch-autotune-gpu')),
    score_rule          TEXT,
    requested_build     TEXT CHECK (requested_build IS NULL OR json_valid(requested_build)),
    requested_libraries TEXT CHECK (requested_libraries IS NULL OR json_valid(requested_libraries)),
    build_commands      TEXT CHECK (build_commands IS NULL OR json_valid(build_commands)),
    build_ok            INTEGER CHECK (build_ok IN (0, 1)),
    correct             INTEGER CHECK (correct IN (0, 1)),
    status              TEXT CHECK (status IN (
                            'ok', 'incorrect', 'build_error', 'score_error', 'overfit', 'too_slow', 'timeout',
                            'unverified', 'agent_error', 'error', 'graded', 'unsolved')),
    reason              TEXT,
    speedup             REAL,                           -- what was measured; 0 is untimed
    credited_speedup    REAL CHECK (credited_speedup > 0),
    suspect             INTEGER CHECK (suspect IN (0, 1)),
    device_runtime      TEXT,
    baseline_ns         REAL,
    native_ns           REAL,
    timing_residual_ns  REAL,
    timing_host_ns      REAL,
    timing_event_ns     REAL,
    device_index        INTEGER,
    detail              TEXT,
    distribution        TEXT,
    workspace_bytes     INTEGER,
    layout              TEXT,
    layout_prep_ns      REAL,
    layout_request      TEXT,
    size_scale          REAL,
    scale_axes          TEXT,
    node                TEXT,
    cpu                 TEXT,
    commit_sha          TEXT,
    task_hash           TEXT,
    UNIQUE (episode_id, kernel, ts_ms, kind),
    CHECK ((kind IN ('final', 'regrade')) = (of_grade_id IS NOT NULL)),
    CHECK (credited_speedup IS NULL OR (build_ok IS 1 AND correct IS 1))
) STRICT;
CREATE INDEX grades_of ON grades (of_grade_id);
CREATE INDEX grades_request ON grades (request_id);

CREATE TABLE grade_sources (
    grade_id INTEGER NOT NULL REFERENCES grades (id) ON DELETE CASCADE,
    part     TEXT NOT NULL CHECK (part IN ('host', 'device')),
    language TEXT NOT NULL,
    hash     TEXT NOT NULL REFERENCES sources (hash),
    PRIMARY KEY (grade_id, part)
) STRICT, WITHOUT ROWID;

CREATE TABLE grade_cells (
    grade_id            INTEGER NOT NULL REFERENCES grades (id) ON DELETE CASCADE,
    cell                INTEGER NOT NULL CHECK (cell >= 0),
    label               TEXT,
    shape               TEXT CHECK (shape IS NULL OR json_valid(shape)),
    timed               INTEGER CHECK (timed IN (0, 1)),
    correct             INTEGER CHECK (correct IN (0, 1)),  -- NULL: no reference answered
    suspect             INTEGER CHECK (suspect IN (0, 1)),
    significant         INTEGER CHECK (significant IN (0, 1)),
    p_value             REAL,
    baseline            TEXT,                               -- the winner of the race
    baseline_candidates TEXT,                               -- joined by '+'
    race_leader         TEXT,
    race_leader_source  TEXT,
    race_cuts           TEXT CHECK (race_cuts IS NULL OR json_valid(race_cuts)),
    baseline_ns         REAL,
    native_ns           REAL,
    ratio               REAL,
    residency           TEXT,
    timer               TEXT,
    copies_excluded     INTEGER CHECK (copies_excluded IN (0, 1)),
    residual_ns         REAL,
    host_event_delta_ns REAL,
    device_index        INTEGER,
    status              TEXT CHECK (status IN ('graded', 'unmeasured', 'error', 'uncovered')),
    reason              TEXT,
    PRIMARY KEY (grade_id, cell)
) STRICT, WITHOUT ROWID;

CREATE TABLE scaling_grades (
    grade_id       INTEGER NOT NULL REFERENCES grades (id) ON DELETE CASCADE,
    mode           TEXT NOT NULL CHECK (mode IN ('weak', 'strong')),
    input          TEXT NOT NULL DEFAULT '',
    status         TEXT,
    single_rank_ns REAL,
    disclosure     TEXT,
    notes          TEXT,
    PRIMARY KEY (grade_id, mode, input)
) STRICT, WITHOUT ROWID;

CREATE TABLE scaling_points (
    grade_id   INTEGER NOT NULL,
    mode       TEXT NOT NULL,
    input      TEXT NOT NULL DEFAULT '',
    ranks      INTEGER NOT NULL CHECK (ranks >= 1),
    nodes      INTEGER,
    ranked_ns  REAL,                                        -- NULL: this rank count was dropped
    work_ratio REAL,
    efficiency REAL,
    note       TEXT,
    PRIMARY KEY (grade_id, mode, input, ranks),
    FOREIGN KEY (grade_id, mode, input) REFERENCES scaling_grades (grade_id, mode, input) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE disqualifications (
    grade_id INTEGER NOT NULL PRIMARY KEY REFERENCES grades (id) ON DELETE CASCADE,
    reason   TEXT NOT NULL,
    ts_ms    INTEGER NOT NULL
) STRICT;

CREATE TABLE reference_scaling_points (
    source       TEXT NOT NULL,
    kernel       TEXT NOT NULL,
    mode         TEXT NOT NULL CHECK (mode IN ('weak', 'strong')),
    ranks        INTEGER NOT NULL CHECK (ranks >= 1),
    repeat       INTEGER NOT NULL,
    params       TEXT,
    arch         TEXT,
    image        TEXT,
    compile_mode TEXT,
    nodes        INTEGER,
    ranked_ns    REAL,
    samples      TEXT,
    work_ratio   REAL,
    note         TEXT,
    job          INTEGER,
    node         TEXT,
    commit_sha   TEXT,
    ts_ms        INTEGER NOT NULL,
    PRIMARY KEY (source, kernel, mode, ranks, repeat, ts_ms)
) STRICT;

-- What a merge has already read, by source folder; local to one file and never merged onwards.
CREATE TABLE merge_state (
    source TEXT NOT NULL PRIMARY KEY,
    mark   TEXT NOT NULL
) STRICT;

CREATE VIEW grades_flat AS
SELECT g.*, e.job, e.label, e.rep, e.slot, e.kernel AS episode_kernel, e.cancelled, e.final_attempt_start_ms,
       s.setup, s.study, s.model, s.language, s.device, s.packet, s.harness, s.temperature
FROM grades g JOIN episodes e ON e.id = g.episode_id JOIN setups s ON s.setup = e.setup;
