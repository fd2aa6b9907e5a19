"""The rules are complete for the designs: whatever a mutant does that breaks no rule leaves every view intact."""

from __future__ import annotations

import pytest
from kvsan.checker.explore.design import find
from kvsan.checker.explore.module import build
from kvsan.checker.explore.mutants import chosen, every_mutant
from kvsan.checker.explore.search import Limits, search

pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")


VIEWS = {"view_intact", "sent_what_it_has"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("tail_copy", "two_branches"),
        ("paged_cow", "host_wait_three_blocks"),
        ("prefix_append_only", ""),
        ("speculative", "one_branch"),
        ("speculative", "one_branch_append_only"),
        ("speculative", "window"),
        ("speculative", "reuse_after_cancel"),
        ("prefix_cow", ""),
        ("transfers", "full_prompt"),
        ("transfers", "several_handles"),
        ("transfers", "two_tiers"),
    ],
)
def test_no_way_of_a_mutant_that_breaks_no_rule_spoils_a_view(name: str, scope: str) -> None:
    """Every state that no rule forbids is searched, not only the shortest ways, for every mutant of the design."""
    design = find(name)
    prepared = every_mutant(design, "full", scope)
    module, judges = build(prepared.generated.source), prepared.generated.judges
    spoiled, broken = [], set()
    for mutant in design.spec.choices["Mutant"].names:
        begun = [start.state for start in chosen(prepared, mutant).begun]
        found = search(prepared.model, prepared.generated, module, begun, Limits(100_000), stop=False)
        rules = {judges[f.judge].rule for f in found.failures if judges[f.judge].kind in ("rule", "invariant")}
        assert found.stopped == ""
        spoiled += [mutant] if rules & VIEWS else []
        broken |= rules
    assert spoiled == []
    assert len(broken) > 2
