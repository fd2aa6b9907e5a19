# mypy: ignore-errors
# ruff: noqa: F821
"""The search itself, in the language of `machine`. This text stands below `WORDS`, `BATCH`, `FAN` and the steps in
every generated text, and is never imported.

A state is a row of WORDS words in `states`; `table` is an open hash table of numbers of states plus one, 0 where empty,
with the low bits of the hash above them. Successors gather in `buf` and are stored a batch at a time: first every slot
is called into the cache, then every row that a slot names, then each is compared.
"""


@inline
def mixed(row, k):
    """The hash of row k: a sum of odd multiples, then two rounds of shift and multiply."""
    h = 0
    m = 0x9E3779B97F4A7C15
    for j in range(WORDS):
        h += row[k * WORDS + j] * m
        m = m * 0xD1342543DE82EF95 + 2
    h ^= lshr(h, 29)
    h *= 0xBF58476D1CE4E5B9
    h ^= lshr(h, 32)
    return h * 0x94D049BB133111EB


def store(states, count, table: Half, bits, buf, n, hashes):
    """Add the n rows of buf that are new. Returns how many states there are then."""
    shift = 64 - bits
    low = (1 << bits) - 1
    tags = (1 << (32 - bits)) - 1
    for k in range(n):
        h = mixed(buf, k)
        hashes[k] = h
        prefetch(table, lshr(h, shift))
    for k in range(n):
        e = table[lshr(hashes[k], shift)]
        if e != 0 and (e >> bits) == hashes[k] & tags:
            prefetch(states, ((e & low) - 1) * WORDS)
    for k in range(n):
        tag = hashes[k] & tags
        slot = lshr(hashes[k], shift)
        while True:
            e = table[slot]
            if e == 0:
                for j in range(WORDS):
                    states[count * WORDS + j] = buf[k * WORDS + j]
                count += 1
                table[slot] = count | (tag << bits)
                break
            if (e >> bits) == tag:
                base = ((e & low) - 1) * WORDS
                differ = 0
                for j in range(WORDS):
                    differ |= states[base + j] ^ buf[k * WORDS + j]
                if differ == 0:
                    break
            slot = (slot + 1) & low
    return count


def rehash(states, count, table: Half, bits, hashes):
    """Fill an empty table of 2**bits slots with the states there are."""
    shift = 64 - bits
    low = (1 << bits) - 1
    tags = (1 << (32 - bits)) - 1
    for start in range(0, count, BATCH):
        n = min(BATCH, count - start)
        for k in range(n):
            h = mixed(states, start + k)
            hashes[k] = h
            prefetch(table, lshr(h, shift))
        for k in range(n):
            slot = lshr(hashes[k], shift)
            while table[slot] != 0:
                slot = (slot + 1) & low
            table[slot] = (start + k + 1) | ((hashes[k] & tags) << bits)
    return count


def sweep(
    states,
    count,
    table: Half,
    bits,
    at,
    stop,
    limit,
    target,
    buf,
    codes,
    hashes,
    fan,
    taken,
    judged,
    fail_at,
    fail_code,
    found,
):
    """Expand the states from `at` up to `stop`, while there is room for `limit` states: found is (at, count).

    target: -1; or a state whose first predecessor is looked for, nothing stored: found is (predecessor, code), or
    (stop, -1); or -2: found is (at, successors), left in buf and codes as they are.
    """
    n = 0
    while at < stop and count + n + FAN <= limit:
        before = n
        n = expand(states, at, buf, n, codes, taken, judged, fail_at, fail_code)
        if target == -2:
            found[0] = at
            found[1] = n
            return n
        canonical(buf, before, n)
        if target >= 0:
            for k in range(n):
                differ = 0
                for j in range(WORDS):
                    differ |= states[target * WORDS + j] ^ buf[k * WORDS + j]
                if differ == 0:
                    found[0] = at
                    found[1] = codes[k]
                    return 1
            n = 0
            at += 1
        else:
            fan[n - before] += 1
            at += 1
            if n >= BATCH:
                count = store(states, count, table, bits, buf, n, hashes)
                n = 0
    found[0] = at
    found[1] = -1
    if target < 0:
        found[1] = store(states, count, table, bits, buf, n, hashes)
    return 0
