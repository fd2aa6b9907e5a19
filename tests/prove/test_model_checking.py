"""Z3 and the explorer agree on small scopes: what is broken, and after how many steps."""

from __future__ import annotations

import pytest

pytest.importorskip("z3")

from kvsan.checker.explore.design import find, scoped
from kvsan.checker.prove.bounded import bounded
from kvsan.spec.designs.catalog import DESIGNS, TAIL_COPY, Mutant

SHORT = [(d, m) for d in DESIGNS.values() for m in d.mutants if m.steps <= 5 and m.rule != "needless_copy"]
FAST = {"cancel_frees_shared"}


@pytest.mark.parametrize(
    ("name", "mutant"),
    [
        pytest.param(
            d.name, m, marks=[] if d is TAIL_COPY and m.name in FAST else [pytest.mark.slow], id=f"{d.name}-{m.name}"
        )
        for d, m in SHORT
    ],
)
def test_a_mutant_breaks_its_rule_after_as_many_steps(name: str, mutant: Mutant) -> None:
    design = find(name)
    found = bounded(design, scoped(design, {}, mutant.scope, mutant.name), mutant.steps)
    assert found.depth == mutant.steps
    assert mutant.rule in found.broken  # two rules may name one step


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "scope", "depth"),
    [
        ("tail_copy", "two_branches", 4),
        ("paged_cow", "full_prompt", 3),
        ("prefix_append_only", "", 4),
        ("prefix_cow", "", 3),
        ("speculative", "one_branch", 6),
        ("transfers", "full_prompt", 6),
    ],
)
def test_the_right_design_breaks_nothing_in_so_many_steps(name: str, scope: str, depth: int) -> None:
    design = find(name)
    found = bounded(design, scoped(design, {}, scope), depth)
    assert (found.depth, found.unknown) == (None, False)


@pytest.mark.slow
def test_a_query_that_may_spend_next_to_nothing_is_unknown() -> None:
    design = find("tail_copy")
    found = bounded(design, scoped(design, {}, "two_branches"), 2, 10_000)
    assert (found.depth, found.broken, found.unknown) == (None, (), True)
