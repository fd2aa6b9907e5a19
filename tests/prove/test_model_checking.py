"""Z3 and the explorer agree on small scopes: what is broken, and after how many steps."""

from __future__ import annotations

import pytest

pytest.importorskip("z3")

from kvsan.checker.explore.design import find, scoped
from kvsan.checker.prove.bounded import bounded
from kvsan.spec.designs.catalog import TAIL_COPY, Mutant

SHORT = [m for m in TAIL_COPY.mutants if m.steps <= 4 and m.rule != "needless_copy"]
FAST = {"cancel_frees_shared"}


@pytest.mark.parametrize(
    "mutant", [pytest.param(m, marks=[] if m.name in FAST else [pytest.mark.slow], id=m.name) for m in SHORT]
)
def test_a_mutant_breaks_its_rule_after_as_many_steps(mutant: Mutant) -> None:
    design = find("tail_copy")
    found = bounded(design, scoped(design, {}, mutant.scope, mutant.name), mutant.steps)
    assert (found.depth, found.broken) == (mutant.steps, (mutant.rule,))


@pytest.mark.slow
def test_the_right_design_breaks_nothing_in_so_many_steps() -> None:
    design = find("tail_copy")
    found = bounded(design, scoped(design, {}, "two_branches"), 4)
    assert (found.depth, found.unknown) == (None, False)
