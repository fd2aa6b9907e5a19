# mypy: ignore-errors
"""The search itself, compiled. This text is copied into every generated module, below `WORDS`, `BATCH` and `expand`.

A state is a row of WORDS signed words in `states`; `table` is an open hash table of numbers of states plus one, 0 where
empty, with the low bits of the hash above them. Successors gather in `buf` and are stored a batch at a time: first
every slot is called into the cache, then every row that a slot names, then each is compared.
"""

from __future__ import annotations

import numpy as np
from kvsan.checker.explore.prefetch import prefetch
from numba import njit

WORDS, BATCH, FAN = 1, 256, 1  # replaced by the generated module


def expand(*_):  # replaced by the generated module
    return 0


def canonical(*_):  # replaced by the generated module where a symmetry is used
    return


# --- copied from here -------------------------------------------------------------------------------------------------


@njit(inline="always")
def mixed(row, k):
    """The hash of row k: a sum of odd multiples, then two rounds of shift and multiply."""
    h = np.uint64(0)
    m = np.uint64(0x9E3779B97F4A7C15)
    for j in range(WORDS):
        h += np.uint64(row[k * WORDS + j]) * m
        m = m * np.uint64(0xD1342543DE82EF95) + np.uint64(2)
    h ^= h >> np.uint64(29)
    h *= np.uint64(0xBF58476D1CE4E5B9)
    h ^= h >> np.uint64(32)
    return h * np.uint64(0x94D049BB133111EB)


@njit(cache=True, nogil=True)
def store(states, count, table, bits, buf, n, hashes):
    """Add the n rows of buf that are new. Returns how many states there are then."""
    shift = np.uint64(64 - bits)
    low = np.uint64((1 << bits) - 1)
    one = np.uint64(1)
    above = np.uint64(bits)
    tags = np.uint64((1 << (32 - bits)) - 1)
    for k in range(n):
        h = mixed(buf, k)
        hashes[k] = h
        prefetch(table, h >> shift)
    for k in range(n):
        h = hashes[k]
        e = np.uint64(table[h >> shift])
        if e != np.uint64(0) and (e >> above) == h & tags:
            prefetch(states, ((e & low) - one) * np.uint64(WORDS))
    for k in range(n):
        h = hashes[k]
        tag = h & tags
        slot = h >> shift
        while True:
            e = np.uint64(table[slot])
            if e == np.uint64(0):
                base = np.uint64(count) * np.uint64(WORDS)
                for j in range(WORDS):
                    states[base + np.uint64(j)] = buf[k * WORDS + j]
                count += 1
                table[slot] = np.uint32(np.uint64(count) | (tag << above))
                break
            if (e >> above) == tag:
                base = ((e & low) - one) * np.uint64(WORDS)
                same = True
                for j in range(WORDS):
                    same &= states[base + np.uint64(j)] == buf[k * WORDS + j]
                if same:
                    break
            slot = (slot + one) & low
    return count


@njit(cache=True, nogil=True)
def rehash(states, count, table, bits):
    """Fill an empty table of 2**bits slots with the states there are."""
    shift = np.uint64(64 - bits)
    low = np.uint64((1 << bits) - 1)
    one = np.uint64(1)
    above = np.uint64(bits)
    tags = np.uint64((1 << (32 - bits)) - 1)
    hashes = np.empty(BATCH, np.uint64)
    for start in range(0, count, BATCH):
        n = min(BATCH, count - start)
        for k in range(n):
            hashes[k] = mixed(states, start + k)
            prefetch(table, hashes[k] >> shift)
        for k in range(n):
            h = hashes[k]
            tag = h & tags
            slot = h >> shift
            while table[slot] != 0:
                slot = (slot + one) & low
            table[slot] = np.uint32(np.uint64(start + k + 1) | (tag << above))


@njit(cache=True, nogil=True)
def sweep(
    states, count, table, bits, at, stop, limit, target, buf, codes, hashes, fan, taken, judged, fail_at, fail_code
):
    """Expand the states from `at` up to `stop`, while there is room for `limit` states. Returns (at, count).

    target: -1; or a state whose first predecessor is looked for, nothing stored: returns (predecessor, code), or
    (stop, -1); or -2: returns (at, successors), left in buf and codes as they are.
    """
    n = np.int64(0)  # else its first type is a literal, and all that it is passed to is compiled twice
    while at < stop and count + n + FAN <= limit:
        before = n
        n = expand(states, at, buf, n, codes, taken, judged, fail_at, fail_code)
        if target == -2:
            return at, n
        canonical(buf, before, n)
        if target >= 0:
            for k in range(n):
                same = True
                for j in range(WORDS):
                    same &= states[target * WORDS + j] == buf[k * WORDS + j]
                if same:
                    return at, codes[k]
            n = np.int64(0)
            at += 1
            continue
        fan[n - before] += 1
        at += 1
        if n >= BATCH:
            count = store(states, count, table, bits, buf, n, hashes)
            n = np.int64(0)
    if target >= 0:
        return at, np.int64(-1)
    count = store(states, count, table, bits, buf, n, hashes)
    return at, count
