"""Loops whose turns each set entries of their own: all of them at once, in a form that has no order."""

from __future__ import annotations

from kvsan.spec.lang import ir
from kvsan.spec.lang.walk import every, expressions


def is_pointwise(loop: ir.For) -> bool:
    """Whether each turn only sets entries of its own, and reads no others that a turn changes."""
    own, seen = loop.name, dict[str, tuple[ir.Expr, ...]]()
    for s in loop.body:
        if not isinstance(s, ir.Store) or s.variable in seen:
            return False
        if [isinstance(i, ir.Name) and i.name == own for i in s.index].count(True) != 1:
            return False
        deeper = (e for i in s.index if not isinstance(i, ir.Name) for e in every(i))
        if any(isinstance(e, ir.Name) and e.name == own for e in deeper):
            return False
        seen[s.variable] = s.index
    for n, s in enumerate(loop.body):
        later = {t.variable for t in loop.body[n:] if isinstance(t, ir.Store)}
        for part in (p for e in expressions(s) for p in every(e)):
            if isinstance(part, ir.Quantifier):
                return False
            if not isinstance(part, ir.Read) or part.variable not in seen:
                continue
            if part.variable not in later or not _own_entry(part.index, seen[part.variable], own):
                return False
    return True


def _own_entry(index: tuple[ir.Expr, ...], stored: tuple[ir.Expr, ...], own: str) -> bool:
    """Whether an entry is one that no other turn changes: the loop's member stands where the store has it."""
    at = next(n for n, i in enumerate(stored) if isinstance(i, ir.Name) and i.name == own)
    here = index[at]
    return isinstance(here, ir.Name) and here.name == own
