"""The generated search numbers a step as `Model.decode` reads it, however many parameters it has."""

from __future__ import annotations

import itertools
import re

from kvsan.checker.explore.design import find, scoped
from kvsan.checker.explore.explore import prepare


def test_every_choice_of_parameters_has_the_code_that_names_it() -> None:
    design = find("prefix_append_only")
    made = prepare(design, scoped(design, {"blocks": "2"}), "none")
    written = re.findall(r"^        +code = (.*)$", made.generated.source, re.M)
    assert len(written) == len(made.model.actions)
    assert max(len(a.params) for a in made.model.actions) == 3
    seen = []
    for action, text in zip(made.model.actions, written, strict=True):
        loops = [range(made.model.sizes.sorts[p.type.name]) for p in action.params]  # type: ignore[attr-defined]  # here each parameter is of a sort
        for values in itertools.product(*loops):
            given = {f"p_{p.name}": v for p, v in zip(action.params, values, strict=True)}
            code = eval(text, given)  # a sum of products, made by us
            assert made.model.decode(code) == (action, values)
            seen.append(code)
    assert seen == list(range(made.model.bases[-1]))
