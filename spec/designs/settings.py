"""What one search is about: the names that `--set` takes, and what they mean for a specification.

branches, blocks, block_size (slots), positions (entries of a table), prompt (tokens) and whatever else a design
declares as `Const`. Every block and branch has the same block size; other pools and cache groups are out of a design's
scope.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from kvsan.spec.ownership.disciplines import DISCIPLINES

Setting: TypeAlias = int | bool | str
Settings: TypeAlias = Mapping[str, Setting]


def as_set(settings: Settings) -> str:
    """A scope on one line, each setting as `--set` takes it: `branches=2 copy_on_write=false`."""
    return " ".join(f"{name}={str(value).lower()}" for name, value in settings.items())


@dataclass(frozen=True)
class Sizing:
    """sorts: members per sort. limits: value per range parameter. constants: value of each `Const` variable, the same
    at every index; a choice by its name."""

    sorts: dict[str, int]
    limits: dict[str, int]
    constants: dict[str, Setting]


def discipline_of(settings: Settings, discipline: str) -> str:
    """The discipline that the settings choose, where a design leaves the choice; else the design's own."""
    return str(settings.get("discipline", discipline)).lower()


def sizing(settings: Settings, discipline: str) -> Sizing:
    """The sizes and constants of a design's specification under these settings.

    Raises KeyError for an unknown discipline or where branches, blocks, block_size, positions or prompt is missing.
    """
    number = {name: int(value) for name, value in settings.items() if not isinstance(value, str)}
    blocks, branches, positions = number["blocks"], number["branches"], number["positions"]
    tokens = number["block_size"] * positions
    limits = {"tokens": tokens, "count": max(blocks, branches, positions, tokens) + 1, **number}
    sorts = {
        "Block": blocks,
        "Branch": branches,
        "Pool": 1,
        "Holder": number.get("holders", 0),
        "Identity": number.get("identities", 0),
        "Digest": 0,
        "Published": 0,
        "Op": number.get("ops", 0),
    }
    constants: dict[str, Setting] = {
        **DISCIPLINES[discipline_of(settings, discipline)].constants,
        "counts_pins": False,
        "slots_of": number["block_size"],
        "capacity": tokens,
        **settings,
    }
    return Sizing(sorts, limits, constants)
