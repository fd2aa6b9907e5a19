"""Outcomes built by hand, for tests that are about rendering alone."""

from __future__ import annotations

from kvsan.checker.replay.life import Life
from kvsan.checker.replay.outcome import Because, Outcome, RuleCoverage, Violation
from kvsan.checker.report.rulebook import RuleDoc
from kvsan.traces.events import Fork, Write
from kvsan.traces.problem import LogProblem

HEADER = {
    "ev": "trace",
    "schema": "kvsan/1",
    "engine": "vllm",
    "version": "0.6.2",
    "discipline": "paged_cow",
    "block_size": 4,
    "blocks": 16,
}

WRITE = Violation(
    rule="exclusive_write",
    line=42,
    seq=41,
    event={"ev": "write", "branch": "r2", "block": 7, "slots": [3, 4], "stream": "compute"},
    message="branch r2 wrote slot 3 of block 7, which branch r1 also owns",
    block="7",
    branch="r2",
    because=(Because(17, "fork r1 -> r2 shared block 7 (owners 1 -> 2)"),),
    missing="a copy of block 7 for r2, or r1's release of it, between lines 17 and 42",
    source="PagedAttention (SOSP'23) section 4.4, copy-on-write at block granularity",
    replay="kvsan check beam.jsonl --until 42 --block 7",
)

LINT = Violation(
    rule="needless_copy",
    line=30,
    seq=29,
    event={"ev": "copy", "src": 3, "dst": 4, "slots": [0, 2]},
    message="block 3 had a sole owner",
    block="3",
    replay="kvsan check beam.jsonl --until 30 --block 3",
)

HOSTILE = Violation(
    rule="free_once",
    line=44,
    seq=None,
    event={"ev": "free", "block": 9, "branch": "<b>\x1b[31m&\"'"},
    message="block 9 of <b>\x1b[31m&\"' was free",
    block="9",
    branch="<b>\x1b[31m&\"'",
    replay="kvsan check beam.jsonl --until 44 --block 9",
)

KNOWN = Violation(
    rule="no_leak",
    line=50,
    seq=49,
    event={"ev": "quiescent"},
    message="block 2 has no owner and no pin, and is not free",
    block="2",
    suppressed="the nightly run is killed before its last request ends",
    replay="kvsan check beam.jsonl --until 50 --block 2",
)

COVERAGE = {
    "alloc_from_free": RuleCoverage(12, "checked"),
    "free_once": RuleCoverage(9, "checked", unknown=2),
    "exclusive_write": RuleCoverage(31, "checked"),
    "pins_balanced": RuleCoverage(0, "not_exercised"),
    "no_leak": RuleCoverage(1, "checked"),
    "copy_precedes_use": RuleCoverage(0, "not_checkable", needs=("copy", "step")),
    "view_intact": RuleCoverage(0, "not_checkable"),
}

VIOLATED = Outcome(
    verdict="VIOLATED",
    exit_code=1,
    log=HEADER,
    name="beam.jsonl",
    events=49,
    last_line=50,
    violations=(WRITE, HOSTILE),
    lints=(LINT,),
    assumptions=("owners is unknown: the log records no hit",),
    coverage=COVERAGE,
    suppressed=(KNOWN,),
    unused=("free_once block=3",),
)

HOLDS = Outcome("HOLDS", 0, HEADER, "good.jsonl", 12, 13, (), (), (), {"free_once": RuleCoverage(9, "checked")})

PROBLEM = LogProblem("malformed", "bad.jsonl", 7, "block", '"x" is no block id', "write a whole number from 0")

BROKEN = Outcome(
    verdict="UNKNOWN",
    exit_code=2,
    log=HEADER,
    name="bad.jsonl",
    events=5,
    last_line=6,
    violations=(),
    lints=(),
    assumptions=(),
    coverage={"free_once": RuleCoverage(1, "checked")},
    reasons=('the log breaks off after line 6: "x" is no block id',),
    problem=PROBLEM,
)

RULES = {
    name: RuleDoc(name, kind, f"The fact of {name}. More of it.", {"Source": "a <paper>.", "Except": "none."})
    for name, kind in (
        ("free_once", "rule"),
        ("exclusive_write", "rule"),
        ("no_leak", "rule"),
        ("needless_copy", "lint"),
    )
}
"""A small rulebook: kept reports hold no sentence of the specification, which may be worded better any day."""

LIFE = Life("block 7", ((17, Fork(branch="r2", parent="r1")), (42, Write(branch="r2", block=7, slots=(3, 4)))))
