"""Disciplines: which rules an engine generation obeys, and the choices that differ between generations.

A discipline belongs to an engine *and version*: never assume that one engine's API has another's branching.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Discipline:
    """The choices of one generation. `constants` gives the values of the `Const` scalars of `Ownership`."""

    name: str
    source: str
    append_only: bool
    seals_partial: bool
    returns_lookahead: bool

    @property
    def constants(self) -> dict[str, bool]:
        return {
            "append_only": self.append_only,
            "seals_partial": self.seals_partial,
            "returns_lookahead": self.returns_lookahead,
        }


PAGED_COW = Discipline("paged_cow", "PagedAttention (SOSP'23); vLLM V0", False, False, True)
APPEND_ONLY = Discipline("append_only", "vLLM 0.9.1 V1", True, False, False)
APPEND_ONLY_COW = Discipline("append_only_cow", "vLLM V1 from 0.26", True, True, False)
PAGE_TREE = Discipline("page_tree", "SGLang's radix cache", False, False, False)

DISCIPLINES = {d.name: d for d in (PAGED_COW, APPEND_ONLY, APPEND_ONLY_COW, PAGE_TREE)}
