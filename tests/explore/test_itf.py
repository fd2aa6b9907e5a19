"""A way as an ITF trace: read back by another project's reader, it says what the steps say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any  # JSON values

import pytest
from kvsan.checker.explore.design import find, scoped
from kvsan.checker.explore.explore import prepare
from kvsan.checker.explore.itf import itf
from kvsan.checker.explore.simulate import Walks, simulate

MACHINE = str(Path(__file__).parent / "designs" / "tail_machine.py")


@pytest.fixture(scope="module")
def walked() -> tuple[Walks, str]:
    """A walk of the small machine, and its trace."""
    design = find(MACHINE)
    chosen = scoped(design, {"branches": "2", "blocks": "4"})
    done = simulate(prepare(design, chosen, "none"), 1, 12, 5)
    assert len(done.last) > 3
    return done, itf(design.spec, chosen, done.start, done.last, "a walk")


def test_another_reader_finds_every_state(walked: tuple[Walks, str]) -> None:
    itf_py = pytest.importorskip("itf_py", reason="the package itf-py reads the trace back")
    done, text = walked
    trace = itf_py.trace_from_json(json.loads(text))
    assert trace.meta["format"] == "ITF"
    assert [s.meta["action"] for s in trace.states] == ["start", *(s.text for s in done.last)]
    phases = ("IDLE", "COPYING", "COPIED", "WRITING")
    for state, plain in zip(trace.states, [done.start, *(s.after for s in done.last)], strict=True):
        values = state.values
        assert set(values) == set(trace.vars)
        assert values["alive"] == {f"r{r}": plain.get("alive", {}).get((r,), False) for r in range(2)}
        assert values["length"] == {f"r{r}": plain.get("length", {}).get((r,), 0) for r in range(2)}
        assert values["phase"] == {f"r{r}": phases[plain.get("phase", {}).get((r,), 0) or 0] for r in range(2)}
        assert values["table"] == {(f"r{r}", p): f"b{b}" for (r, p), b in plain.get("table", {}).items()}
        assert values["target"] == {f"r{r}": f"b{b}" for (r,), b in plain.get("target", {}).items()}


def every(value: Any) -> list[Any]:
    """All values inside a JSON value, that one too."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [value, *(x for part in inner for x in every(part))]


def test_no_field_is_null_and_no_integer_is_bare(walked: tuple[Walks, str]) -> None:
    trace = json.loads(walked[1])
    assert None not in every(trace)
    for state in trace["states"]:
        state.pop("#meta")
        assert [x for x in every(state) if isinstance(x, int) and not isinstance(x, bool)] == []
    assert {"#bigint": "3"} in every(trace["states"][0])


def test_a_start_with_nothing_in_it_has_variables_too() -> None:
    design = find(MACHINE)
    trace = json.loads(itf(design.spec, scoped(design), {}, (), "a start"))
    moving = {v.name for v in design.spec.variables.values() if not v.const}
    assert set(trace["vars"]) == moving == set(trace["states"][0]) - {"#meta"}
    assert trace["#meta"]["always default"] == ""


def test_options_that_are_none_have_no_entry_and_sets_are_sets() -> None:
    design = find("tail_copy")
    chosen = scoped(design, scope="two_branches")
    start = {"table": {(0, 1): 3}, "written": {(3,): frozenset({1, 0})}, "free": {(0,): 2}}
    trace = json.loads(itf(design.spec, chosen, start, (), "a start"))
    state = trace["states"][0]
    assert state["table"] == {"#map": [[{"#tup": ["r0", {"#bigint": "1"}]}, "b3"]]}
    assert state["written"]["#map"][3] == ["b3", {"#set": [{"#bigint": "0"}, {"#bigint": "1"}]}]
    assert [pair[0] for pair in state["written"]["#map"]] == ["b0", "b1", "b2", "b3"]
    assert "queued" in trace["#meta"]["always default"].split()
    assert set(trace["vars"]) == {"table", "written", "free"}
