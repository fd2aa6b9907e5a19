"""The lab: the figures of its task, the closed form, and that ownership has no part in it."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from kvsan.checker.lab import Policy, expected_hits, requests, run
from typer.testing import CliRunner

from kvsan.checker.cli import app  # isort: skip

LAB = Path(__file__).parents[2] / "checker" / "lab.py"


@pytest.mark.parametrize("policy", list(Policy))
def test_a_cycle_twice_the_capacity_never_hits_in_sixteen_requests(policy: Policy) -> None:
    assert run(4, 2, policy=policy).hits == (False,) * 16


@pytest.mark.parametrize("policy", list(Policy))
def test_a_cycle_that_fits_hits_from_the_second_round_on(policy: Policy) -> None:
    assert run(8, 2, policy=policy).hits == (False,) * 8 + (True,) * 8


@pytest.mark.parametrize(
    ("time", "count"),
    [(0, 16), (0.49, 16), (0.5, 17), (10, 36), (2039.5, 4095), (2040, 4096), (1e9, 4096), (1e308, 4096)],
)
def test_two_requests_a_second_come_on_top_of_sixteen_up_to_4096(time: float, count: int) -> None:
    assert requests(time) == count == len(run(4, 2, time).hits)


@pytest.mark.parametrize("policy", list(Policy))
def test_the_closed_form_says_how_many_hit(policy: Policy) -> None:
    for capacity in range(14):
        for stride in (1, 2, 3):
            for time in (0, 7, 100):
                done = run(capacity, stride, time, policy)
                assert done.hit_count == expected_hits(capacity, stride, len(done.hits)), (capacity, stride, time)


def test_what_is_resident_and_evicted_adds_up() -> None:
    """Every miss brings one in, and an eviction takes one out; the next to go comes first."""
    done = run(4, 2)
    assert (done.evictions, done.resident) == (12, (4, 5, 6, 7))
    done = run(9, 2, 1)
    assert (done.evictions, done.resident) == (0, (2, 3, 4, 5, 6, 7, 0, 1))
    assert run(9, 2, 1, Policy.fifo).resident == (0, 1, 2, 3, 4, 5, 6, 7)


@pytest.mark.parametrize("time", [-1.0, float("inf"), float("nan")])
def test_a_time_that_is_none_is_refused(time: float) -> None:
    with pytest.raises(ValueError, match="finite number of seconds"):
        run(4, 2, time)


def test_the_command_says_what_the_analogy_leaves_out() -> None:
    done = CliRunner().invoke(app, ["lab", "--capacity", "8", "--stride", "2"])
    assert done.exit_code == 0
    assert done.stdout == (
        "capacity 8, stride 2: 8 identities in a cycle, lru\n"
        "  requests   16 after 0 s    ........++++++++\n"
        "  hits       8 (50%), misses 8, evictions 0\n"
        "  resident   0 1 2 3 4 5 6 7, the next to go first\n"
        "  because    the cycle fits: every identity misses once, and hits from then on\n"
        "An analogy for capacity only. It leaves out: branches, aliases, copy-on-write, completion.\n"
    )


def test_a_cycle_that_has_not_come_round_is_said_to_lose_nobody() -> None:
    said = [CliRunner().invoke(app, ["lab", "--capacity", "4", "--stride", str(n)]).output for n in (2, 4)]
    assert "gone just before it comes round" in said[0] and "not come round yet" not in said[0]
    assert "not come round yet: every identity is new" in said[1] and "gone just before" not in said[1]


def test_the_command_has_a_form_for_programs() -> None:
    done = CliRunner().invoke(app, ["lab", "--capacity", "4", "--stride", "2", "--policy", "fifo", "-f", "json"])
    found = json.loads(done.stdout)
    assert (found["requests"], found["hits"], found["misses"], found["policy"]) == (16, 0, 16, "fifo")


def test_the_lab_knows_nothing_of_ownership() -> None:
    tree = ast.parse(LAB.read_text())
    modules = [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    assert not [m for m in modules if "kvsan" in m]
