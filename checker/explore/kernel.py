# mypy: ignore-errors
# ruff: noqa: F821
"""The search itself, in the language of `machine`. This text stands below the numbers of a generated text (`WORDS`,
`CUT`, ...) and its steps, and is never imported.

`sets` describes sets of rows, five numbers each: where the rows lie, how many there are, where the table lies, its
bits, and how many rows fit before somebody must make room. A table is an open hash table of numbers of rows plus one,
0 where empty, with the low bits of the hash above them. Set 0 has the states. Where CUT is 0, its rows are the states'
words. Else a row is one word, the number of the state's first CUT words in set 1 and of its others in set 2: most
states share a half with many others.

Successors gather in `buf` and are stored a batch at a time. While one is stored, the slot of the one SOON places behind
it is called into the cache. Rows are not: the processor goes on to the next slots while it waits for one, and reading
the slots twice costs more than it saves.
"""


@inline
def mixed(row, at, width):
    """The hash of a row: a sum of odd multiples, then two rounds of shift and multiply."""
    h = 0
    m = 0x9E3779B97F4A7C15
    for j in range(width):
        h += row[at + j] * m
        m = m * 0xD1342543DE82EF95 + 2
    h ^= lshr(h, 29)
    h *= 0xBF58476D1CE4E5B9
    h ^= lshr(h, 32)
    return h * 0x94D049BB133111EB


@inline
def intern(sets, which, width, buf, stride, at, n, hashes, apart, first, numbers):
    """The numbers of n rows in a set, added where they are new. Row k is at buf[at + k * stride], its hash at
    hashes[first + k * apart]."""
    rows = array(sets[which * 5])
    count = sets[which * 5 + 1]
    table = halves(sets[which * 5 + 2])
    bits = sets[which * 5 + 3]
    shift = 64 - bits
    low = (1 << bits) - 1
    tags = (1 << (32 - bits)) - 1
    for k in range(min(n, SOON)):
        prefetch(table, lshr(hashes[first + k * apart], shift))
    for k in range(n):
        prefetch(table, lshr(hashes[first + min(k + SOON, n - 1) * apart], shift))
        h = hashes[first + k * apart]
        tag = h & tags
        slot = lshr(h, shift)
        row = at + k * stride
        while True:
            e = table[slot]
            if e == 0:
                for j in range(width):
                    rows[count * width + j] = buf[row + j]
                numbers[k] = count
                count += 1
                table[slot] = count | (tag << bits)
                break
            if (e >> bits) == tag:
                base = ((e & low) - 1) * width
                differ = 0
                for j in range(width):
                    differ |= rows[base + j] ^ buf[row + j]
                if differ == 0:
                    numbers[k] = (e & low) - 1
                    break
            slot = (slot + 1) & low
    sets[which * 5 + 1] = count


def rehash(sets, which, width, hashes):
    """Fill the empty table of a set with its rows."""
    rows = array(sets[which * 5])
    count = sets[which * 5 + 1]
    table = halves(sets[which * 5 + 2])
    bits = sets[which * 5 + 3]
    shift = 64 - bits
    low = (1 << bits) - 1
    tags = (1 << (32 - bits)) - 1
    for start in range(0, count, BATCH):
        n = min(BATCH, count - start)
        for k in range(n):
            hashes[k] = mixed(rows, (start + k) * width, width)
        for k in range(min(n, SOON)):
            prefetch(table, lshr(hashes[k], shift))
        for k in range(n):
            prefetch(table, lshr(hashes[min(k + SOON, n - 1)], shift))
            slot = lshr(hashes[k], shift)
            while table[slot] != 0:
                slot = (slot + 1) & low
            table[slot] = (start + k + 1) | ((hashes[k] & tags) << bits)
    return 0


@inline
def hashed(buf, first, n, hashes):
    """The hashes of n rows of buf from `first` on; two each where a state is kept in halves."""
    for k in range(first, first + n):
        if CUT == 0:
            hashes[k] = mixed(buf, k * WORDS, WORDS)
        else:
            hashes[2 * k] = mixed(buf, k * WORDS, CUT)
            hashes[2 * k + 1] = mixed(buf, k * WORDS + CUT, WORDS - CUT)


def keep(sets, buf, first, n, hashes):
    """Add those of the n hashed rows of buf that are new. Returns how many states there are then."""
    left = words(TURN)
    right = words(TURN)
    again = words(TURN)
    while n > 0:
        m = min(n, TURN)
        if CUT == 0:
            intern(sets, 0, WORDS, buf, WORDS, first * WORDS, m, hashes, 1, first, left)
        else:
            intern(sets, 1, CUT, buf, WORDS, first * WORDS, m, hashes, 2, 2 * first, left)
            intern(sets, 2, WORDS - CUT, buf, WORDS, first * WORDS + CUT, m, hashes, 2, 2 * first + 1, right)
            for k in range(m):
                left[k] |= right[k] << 32
                again[k] = mixed(left, k, 1)
            intern(sets, 0, 1, left, 1, 0, m, again, 1, 0, right)
        first += m
        n -= m
    return sets[1]


def store(sets, buf, first, n, hashes):
    """The same for rows without hashes."""
    hashed(buf, first, n, hashes)
    return keep(sets, buf, first, n, hashes)


def spread(sets, at, stop, buf, codes, hashes, fan, taken, judged, fail_at, fail_code):
    """Expand the states from `at` up to `stop` into buf, hashed, nothing stored. Returns how many successors."""
    n = 0
    while at < stop:
        before = n
        n = expand(sets, at, buf, n, codes, taken, judged, fail_at, fail_code)
        canonical(buf, before, n)
        hashed(buf, before, n - before, hashes)
        fan[n - before] += 1
        at += 1
    return n


def full(sets):
    """Whether a set may have no room for one batch more."""
    found = False
    for which in range(1 if CUT == 0 else 3):
        found = True if sets[which * 5 + 1] + BATCH + FAN > sets[which * 5 + 4] else found
    return found


def sweep(sets, at, stop, most, mode, goal, buf, codes, hashes, fan, taken, judged, fail_at, fail_code, found):
    """Expand the states from `at` up to `stop`. found[0] is where it ended.

    mode: 0 stores what is new, as long as there are at most `most` states and room. 1 stores nothing and ends at the
    first predecessor of the row `goal`: found[1] is the code of the step, or -1. 2 expands one state, and leaves its
    found[1] successors in buf and codes as they are.
    """
    n = 0
    while at < stop:
        if mode == 0 and n == 0 and (sets[1] > most or full(sets)):
            break
        before = n
        n = expand(sets, at, buf, n, codes, taken, judged, fail_at, fail_code)
        if mode == 2:
            found[0] = at
            found[1] = n
            return n
        canonical(buf, before, n)
        if mode == 1:
            for k in range(n):
                differ = 0
                for j in range(WORDS):
                    differ |= goal[j] ^ buf[k * WORDS + j]
                if differ == 0:
                    found[0] = at
                    found[1] = codes[k]
                    return 1
            n = 0
            at += 1
        else:
            fan[n - before] += 1
            at += 1
            if n >= BATCH or at % CHUNK == 0:
                store(sets, buf, 0, n, hashes)
                n = 0
    found[0] = at
    found[1] = -1
    if mode == 0 and n > 0:
        store(sets, buf, 0, n, hashes)
    return 0
