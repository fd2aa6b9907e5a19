"""Random logs that the reference has looked over: any mix of events, far from what an engine would do, yet legal.

Each event is drawn at random over a few blocks and branches; one that breaks a rule of the reference is kept now and
then, and ends the log.
"""

from __future__ import annotations

import random

from reference import Facts, Line, broken, perform

SIZE, BLOCKS = 3, 4
BRANCHES = ("a", "b", "c")
HOLDERS = {
    "k": {"mode": "keep", "kind": "transfer"},
    "f": {"mode": "freeze", "kind": "transfer"},
    "c": {"mode": "keep", "kind": "cache"},
}
KINDS = {
    "alloc": 5, "free": 2, "admit": 2, "grow": 2, "fork": 2, "map": 5, "unmap": 1, "finish": 1, "preempt": 1, "pin": 2,
    "unpin": 2, "seal": 4, "hit": 4, "evict": 1, "ref": 1, "pool": 1, "table": 1, "copy": 3, "write": 6, "inbound": 2,
    "quiescent": 1, "invalidate": 1, "read": 1,
}  # fmt: skip


def header(discipline: str = "paged_cow", **more: object) -> Line:
    fields = {"engine": "model", "version": "1", "discipline": discipline, "block_size": SIZE, "blocks": BLOCKS}
    return {"ev": "trace", "schema": "kvsan/1", **fields, **more}


def random_log(seed: int, length: int = 40) -> list[Line]:
    """A log whose events, but perhaps the last one, break no rule that the reference knows."""
    dice = random.Random(seed)
    head = header(dice.choice(["paged_cow", "append_only_cow"]), ref_counts=dice.choice(["owners", "owners+pins"]))
    f, log = Facts(SIZE, BLOCKS), [head]
    for event in (
        {"ev": "admit", "branch": "a", "tokens": dice.randint(1, 8)},
        {"ev": "alloc", "block": 0, "branch": "a"},
        {"ev": "map", "branch": "a", "pos": 0, "block": 0},
        {"ev": "write", "branch": "a", "block": 0, "slots": [0, 1]},
    ):
        perform(f, event)
        log.append(event)
    while len(log) < length:
        event = draw(dice, f)
        wrong = list(broken(f, event, head["ref_counts"] == "owners+pins", head["discipline"] == "append_only_cow"))
        if wrong and dice.random() > 0.04:
            continue
        log.append(event)
        if wrong:
            break
        perform(f, event)
    return log


def slots(dice: random.Random) -> list[int]:
    lo = dice.randrange(SIZE)
    return [lo, dice.randint(lo + 1, SIZE)]


def draw(dice: random.Random, f: Facts) -> Line:
    """Any event at all; what the state suggests is likelier."""
    kind = dice.choices(list(KINDS), list(KINDS.values()))[0]
    name, b, free = dice.choice(BRANCHES), dice.randrange(BLOCKS), sorted(set(range(BLOCKS)) - f.held)
    holder = dice.choice(list(HOLDERS))
    table = f.branch(name).table
    mine = dice.choice(sorted(table.items())) if table and dice.random() < 0.8 else (dice.randrange(3), b)
    some = {"branch": name} if dice.random() < 0.7 else {}
    match kind:
        case "alloc":
            return {"ev": "alloc", "block": dice.choice(free) if free and dice.random() < 0.9 else b, **some}
        case "free" | "ref" | "evict" | "invalidate":
            more = {"count": dice.randrange(3)} if kind == "ref" else {}
            if kind == "evict":
                more = {"hash": dice.choice("xy")}
            return {"ev": kind, "block": b, **more}
        case "admit" | "grow":
            return {"ev": kind, "branch": name, "tokens": dice.randint(1, 5)}
        case "fork":
            empty = [r for r in BRANCHES if not f.branch(r).table and r != name] or ["d"]
            return {"ev": "fork", "branch": dice.choice(empty), "parent": name}
        case "map":
            return {"ev": "map", "branch": name, "pos": dice.randrange(3), "block": b}
        case "unmap":
            return {"ev": "unmap", "branch": name, "pos": mine[0], "block": mine[1]}
        case "finish" | "preempt" | "read":
            return {"ev": kind, "branch": name}
        case "pin":
            return {"ev": "pin", "block": b, "holder": holder, **HOLDERS[holder]}
        case "unpin":
            return {"ev": "unpin", "block": b, "holder": holder}
        case "seal":
            seal = {"ev": "seal", "block": mine[1] if some else b, "hash": dice.choice("xy"), **some}
            return {**seal, "slots": [0, dice.randint(1, SIZE)]} if dice.random() < 0.5 else seal
        case "hit":
            standing = [(block, s.identity) for block, seals in sorted(f.seals.items()) for s in seals] or [(b, "x")]
            block, identity = dice.choice(standing)
            hit = {"ev": "hit", "block": block, "hash": identity, **some}
            return {**hit, "slots": [0, dice.randint(1, SIZE)]} if dice.random() < 0.2 else hit
        case "pool":
            return {"ev": "pool", "free": len(free) if dice.random() < 0.9 else len(free) + 1}
        case "table":
            row = [table.get(p) for p in range(max(table, default=-1) + 1)]
            return {"ev": "table", "branch": name, "blocks": row if dice.random() < 0.9 else [b, *row]}
        case "copy":
            return {"ev": "copy", "branch": name, "src": mine[1], "dst": b, "slots": slots(dice)}
        case "write":
            write = {"ev": "write", "branch": name, "block": mine[1], "slots": slots(dice)}
            if dice.random() < 0.5:
                lo, hi = write["slots"]
                first = mine[0] * SIZE + lo
                write["tokens"] = [first, first + hi - lo]
            return write
        case "inbound":
            return {"ev": "write", "holder": holder, "block": b, "slots": slots(dice)}
        case _:
            return {"ev": "quiescent"}


def twice_in_a_table(log: list[Line]) -> bool:
    """Whether some branch ever holds a block at two positions, or forks onto a table: rings are not the reference's."""
    f = Facts(log[0]["block_size"], log[0]["blocks"])
    for event in log[1:]:
        if event["ev"] == "fork" and (event["branch"] == event["parent"] or f.branch(event["branch"]).table):
            return True
        perform(f, event)
        tables = [list(branch.table.values()) for branch in f.branches.values()]
        if any(len(table) != len(set(table)) for table in tables):
            return True
    return False
