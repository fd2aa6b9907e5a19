"""The lemmas about counters, on every set over up to four members."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

MEMBERS = range(4)


def sets() -> Iterator[frozenset[int]]:
    for n in range(len(MEMBERS) + 1):
        yield from map(frozenset, combinations(MEMBERS, n))


def test_count_members_holds_of_every_small_set() -> None:
    for s in sets():
        for ks in product(MEMBERS, repeat=3):
            for n in (1, 2, 3):
                if all(k in s for k in ks[:n]) and len(set(ks[:n])) == n:
                    assert len(s) >= n
        assert len(s) < 1 or any(k in s for k in MEMBERS)
        assert len(s) < 2 or any(a in s and b in s and a != b for a, b in product(MEMBERS, repeat=2))


def test_count_moves_holds_of_every_pair_of_small_sets() -> None:
    for s, t in product(sets(), repeat=2):
        for n in range(4):
            for moved in product(MEMBERS, repeat=n):
                if any((k in s) != (k in t) for k in MEMBERS if k not in moved):
                    continue
                change = sum((d in t) - (d in s) for i, d in enumerate(moved) if d not in moved[:i])
                assert len(t) == len(s) + change
