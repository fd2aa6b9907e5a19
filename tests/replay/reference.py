"""An independent reference: who owns, pins and has hit each block, worked out anew from the whole log at every event.

Written from the sentences of the discipline, not from its code: naive sets over the events so far, no counter that an
event keeps. One pool, one cache group, no null block; every copy names its branch. It tells the first line that breaks
a rule of `RULES`, and which ones; the other rules it does not know.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Line = dict[str, Any]  # Any: JSON
Slots = frozenset[int]

RULES = {
    "alloc_from_free", "free_once", "entry_is_held", "exclusive_write", "write_within_table", "sealed_is_immutable",
    "seal_is_earned", "hit_is_live", "ref_count_agrees", "free_count_agrees", "tables_agree", "private_copy_target",
    "pins_balanced", "no_leak",
}  # fmt: skip


@dataclass
class Branch:
    """A row of the block table. rolled_back: tokens that were rejected and not written again."""

    table: dict[int, int] = field(default_factory=dict)
    length: int = 0
    proposed: int = 0
    rolled_back: set[int] = field(default_factory=set)


@dataclass
class Hit:
    """A hit that is not mapped yet."""

    branch: object
    block: int
    identity: object
    slots: Slots
    was_pinned: bool = False


@dataclass
class Seal:
    """An identity that stands on a block. place: the position of its tokens, where a branch sealed it."""

    identity: object
    slots: Slots
    by: object
    place: int | None


@dataclass
class Facts:
    """What a log's events up to some line say, in the words of the discipline."""

    size: int
    blocks: int
    branches: dict[object, Branch] = field(default_factory=dict)
    held: set[int] = field(default_factory=set)
    lived: set[int] = field(default_factory=set)
    taken_for: dict[int, object] = field(default_factory=dict)
    filling: set[tuple[object, int]] = field(default_factory=set)
    replaced: dict[tuple[object, int], int] = field(default_factory=dict)
    pins: list[tuple[int, object, str, str]] = field(default_factory=list)
    pinned_before: set[object] = field(default_factory=set)
    hits: list[Hit] = field(default_factory=list)
    seals: dict[int, list[Seal]] = field(default_factory=dict)
    holds_by: dict[tuple[object, int], list[tuple[object, Slots]]] = field(default_factory=dict)
    hidden: dict[tuple[object, int], set[int]] = field(default_factory=dict)
    joins: dict[int, list[Slots]] = field(default_factory=dict)
    written: dict[int, set[int]] = field(default_factory=dict)

    # --- the words ----------------------------------------------------------------------------------------------------

    def branch(self, name: object) -> Branch:
        return self.branches.setdefault(name, Branch())

    def owners(self, b: int) -> set[object]:
        tables = {name for name, branch in self.branches.items() if b in branch.table.values()}
        return tables | {name for name, block in self.filling if block == b}

    def keepers(self, b: int) -> list[object]:
        return [holder for block, holder, _, _ in self.pins if block == b]

    def freezers(self, b: int) -> set[object]:
        return {holder for block, holder, mode, _ in self.pins if block == b and mode == "freeze"}

    def unmapped(self, b: int) -> list[Hit]:
        return [hit for hit in self.hits if hit.block == b]

    def at_risk(self, b: int) -> bool:
        """A hit alone holds the block: it is neither mapped nor was pinned since."""
        return not self.keepers(b) and any(not hit.was_pinned for hit in self.unmapped(b))

    def sealed(self, b: int) -> Slots:
        return frozenset[int]().union(*(seal.slots for seal in self.seals.get(b, [])))

    def covered(self, name: object, b: int) -> Slots:
        """The slots by whose standing identity the branch holds the block."""
        standing = {seal.identity for seal in self.seals.get(b, [])}
        held_by = [slots for identity, slots in self.holds_by.get((name, b), []) if identity in standing]
        anybody = [seal.slots for seal in self.seals.get(b, []) if seal.by is None]
        return frozenset[int]().union(*held_by, *anybody) & self.sealed(b)

    def agreed(self, b: int) -> Slots:
        """The slots on which every owner agrees, by how each came since the block last had a sole owner."""
        return frozenset(range(self.size)).intersection(*self.joins.get(b, [frozenset()]))

    def place(self, name: object, b: int) -> int:
        """Where the branch's table names the block."""
        return next(p for p, entry in self.branch(name).table.items() if entry == b)

    def found(self, name: object, b: int) -> list[Hit]:
        """The hits that let the branch map the block."""
        own = [hit for hit in self.unmapped(b) if hit.branch == name]
        return own or [hit for hit in self.unmapped(b) if hit.branch is None]

    def visible(self, name: object, b: int, place: int) -> set[int]:
        """Slots that the branch sees: written, below its length, not rolled back, not past what its hit found."""
        branch = self.branch(name)
        end = min([branch.length, *branch.rolled_back])
        seen = {slot for slot in self.written.get(b, set()) if place * self.size + slot < end}
        return seen - self.hidden.get((name, b), set())

    # --- the moves ----------------------------------------------------------------------------------------------------

    def join(self, name: object, b: int, shared: Slots) -> None:
        owners = self.owners(b)
        if name in owners:
            return
        self.joins[b] = [*(self.joins.get(b, []) if len(owners) > 1 else []), shared]

    def drop(self, name: object, p: int) -> None:
        b = self.branch(name).table.pop(p, None)
        if b is not None and b not in self.branch(name).table.values():
            self.holds_by.pop((name, b), None)

    def leave_all(self, name: object) -> None:
        for p in list(self.branch(name).table):
            self.drop(name, p)
        self.filling = {(r, b) for r, b in self.filling if r != name}
        self.hits = [hit for hit in self.hits if hit.branch != name]
        self.replaced = {key: p for key, p in self.replaced.items() if key[0] != name}

    def launch(self, name: object) -> None:
        self.replaced = {key: p for key, p in self.replaced.items() if key[0] != name}


def blocks_of(e: Line) -> list[int]:
    named = e["block"]
    return named if isinstance(named, list) else [named]


def slots_of(e: Line, size: int) -> Slots:
    lo, hi = e.get("slots", [0, size])
    return frozenset(range(lo, hi))


def perform(f: Facts, e: Line) -> None:
    """What the event changes, whether it was allowed or not."""
    kind, name = e["ev"], e.get("branch")
    if kind == "admit":
        f.branch(name).length = max(f.branch(name).length, e.get("tokens", 0))
    elif kind == "grow":
        f.branch(name).length += e.get("tokens", 1)
    elif kind == "fork":
        perform_fork(f, name, e["parent"])
    elif kind in ("finish", "cancel", "preempt"):
        f.leave_all(name)
        tokens = f.branch(name).length
        f.branches.pop(name)
        if kind == "preempt":
            f.branch(name).length = tokens
        else:
            f.taken_for = {b: ("ended", r) if r == name else r for b, r in f.taken_for.items()}
    elif kind == "propose":
        f.branch(name).proposed += e["tokens"]
    elif kind == "accept":
        branch = f.branch(name)
        end = branch.length + branch.proposed
        branch.length += min(e["tokens"], branch.proposed)
        branch.proposed = 0
        branch.rolled_back |= set(range(branch.length, end))
    elif kind == "copy":
        perform_copy(f, e)
    elif kind == "read" and name is not None:
        f.launch(name)
    elif kind == "unmap":
        if f.branch(name).table.get(e["pos"]) == e["block"]:
            f.drop(name, e["pos"])
    elif kind == "map":
        for p, b in enumerate(blocks_of(e), e["pos"]):
            perform_map(f, name, p, b)
    elif "block" in e:
        for b in blocks_of(e):
            perform_on_block(f, e, b)


def perform_fork(f: Facts, child: object, parent: object) -> None:
    old, new = f.branch(parent), f.branch(child)
    new.length, new.rolled_back = old.length, set(old.rolled_back)
    for p, b in old.table.items():
        f.join(child, b, frozenset(slot for slot in range(f.size) if p * f.size + slot < old.length))
        new.table[p] = b
        f.holds_by[child, b] = list(f.holds_by.get((parent, b), []))
        f.hidden[child, b] = set(f.hidden.get((parent, b), set()))


def perform_map(f: Facts, name: object, p: int, b: int) -> None:
    branch = f.branch(name)
    if branch.table.get(p) == b:
        return
    found = f.found(name, b)
    shared = frozenset[int]().union(*(hit.slots for hit in found))
    if p in branch.table:
        f.replaced[name, branch.table[p]] = p
        f.drop(name, p)
    f.taken_for.pop(b, None)
    if name not in f.owners(b):
        f.hidden[name, b] = f.written.get(b, set()) - shared if found else set()
    f.join(name, b, shared)
    f.filling.discard((name, b))
    branch.table[p] = b
    f.holds_by.setdefault((name, b), []).extend((hit.identity, hit.slots) for hit in found)
    if found:
        f.hits.remove(found[0])


def perform_copy(f: Facts, e: Line) -> None:
    name, src, dst, slots = e["branch"], e["src"], e["dst"], slots_of(e, f.size)
    if dst in f.held and not f.owners(dst):
        f.join(name, dst, slots)
        f.filling.add((name, dst))
    f.written[dst] = (f.written.get(dst, set()) - slots) | (f.written.get(src, set()) & slots)


def perform_on_block(f: Facts, e: Line, b: int) -> None:
    kind, name, holder = e["ev"], e.get("branch"), e.get("holder")
    if kind == "alloc":
        f.held.add(b)
        f.lived.add(b)
        f.seals[b], f.written[b], f.joins[b] = [], set(), []
        f.hits = [hit for hit in f.hits if hit.block != b]
        f.taken_for.pop(b, None)
        if name is not None:
            f.taken_for[b] = name
    elif kind == "free":
        f.held.discard(b)
        f.taken_for.pop(b, None)
        f.hits = [hit for hit in f.hits if hit.block != b]
    elif kind == "pin":
        f.pins.append((b, holder, e.get("mode", "keep"), e.get("kind", "transfer")))
        f.pinned_before.add(holder)
        for hit in f.unmapped(b):
            hit.was_pinned = True
    elif kind == "unpin":
        match = next((pin for pin in f.pins if pin[:2] == (b, holder)), None)
        if match:
            f.pins.remove(match)
    elif kind == "seal":
        place = f.place(name, b) if name is not None and b in f.branch(name).table.values() else None
        f.seals.setdefault(b, []).append(Seal(e["hash"], slots_of(e, f.size), name, place))
        if name is not None:
            f.holds_by.setdefault((name, b), []).append((e["hash"], slots_of(e, f.size)))
    elif kind == "hit":
        carried = frozenset[int]().union(*(s.slots for s in f.seals.get(b, []) if s.identity == e["hash"]))
        f.hits.append(Hit(name, b, e["hash"], slots_of(e, f.size) if "slots" in e else carried))
        if name is not None and b not in f.held:
            f.taken_for[b] = name
        f.held.add(b)
    elif kind == "evict":
        f.seals[b] = [s for s in f.seals.get(b, []) if "hash" in e and s.identity != e["hash"]]
    elif kind == "write":
        if name is not None:
            perform_write(f, e, b)
        f.written.setdefault(b, set()).update(slots_of(e, f.size))
    elif kind == "invalidate":
        f.written.setdefault(b, set()).difference_update(slots_of(e, f.size))


def perform_write(f: Facts, e: Line, b: int) -> None:
    name, (lo, hi), branch = e["branch"], e["slots"], f.branch(e["branch"])
    f.launch(name)
    if b in branch.table.values():
        first = e["tokens"][0] if "tokens" in e else f.place(name, b) * f.size + lo
        if not branch.proposed:
            branch.length = max(branch.length, first + hi - lo)
        branch.rolled_back -= set(range(first, first + hi - lo))
        f.hidden.get((name, b), set()).difference_update(range(lo, hi))


# --- the rules --------------------------------------------------------------------------------------------------------


def broken(f: Facts, e: Line, pins_count: bool, partial_seals: bool) -> Iterator[str]:
    """The rules that the event breaks, given what came before it."""
    kind, name = e["ev"], e.get("branch")
    if kind == "fork":
        if not set(f.branch(e["parent"]).table.values()) <= f.held:
            yield "entry_is_held"
    elif kind == "map":
        seen: set[str] = set()
        for p, b in enumerate(blocks_of(e), e["pos"]):
            seen |= set(broken_by_map(f, name, p, b))
        yield from seen
    elif kind == "unmap":
        if f.branch(name).table.get(e["pos"]) != e["block"]:
            yield "tables_agree"
    elif kind == "table":
        view = {p: b for p, b in enumerate(e["blocks"]) if b is not None}
        if view != f.branch(name).table:
            yield "tables_agree"
    elif kind == "pool":
        if e["free"] != f.blocks - len(f.held):
            yield "free_count_agrees"
    elif kind == "copy":
        yield from broken_by_copy(f, e)
    elif kind in ("finish", "cancel"):
        for b in set(f.branch(name).table.values()):
            seals = f.seals.get(b, [])
            if seals and seals[-1].by == name and not f.sealed(b) <= f.written.get(b, set()):
                yield "seal_is_earned"
    elif kind == "quiescent":
        yield from broken_at_rest(f)
    elif "block" in e:
        for b in blocks_of(e):
            yield from broken_on_block(f, e, b, pins_count, partial_seals)


def broken_by_map(f: Facts, name: object, p: int, b: int) -> Iterator[str]:
    if f.branch(name).table.get(p) == b:
        return
    others = f.owners(b)
    if b not in f.held or (others and name not in others and not f.found(name, b)):
        yield "entry_is_held"


def broken_on_block(f: Facts, e: Line, b: int, pins_count: bool, partial_seals: bool) -> Iterator[str]:
    kind, name, holder = e["ev"], e.get("branch"), e.get("holder")
    if kind == "alloc":
        if f.at_risk(b) and not f.owners(b):
            yield "hit_is_live"
        elif b in f.held or b >= f.blocks:
            yield "alloc_from_free"
    elif kind == "free":
        if b not in f.held or f.owners(b) or f.keepers(b):
            yield "free_once"
    elif kind == "pin":
        if b not in f.held:
            yield "entry_is_held"
    elif kind == "unpin":
        if holder not in f.keepers(b):
            yield "pins_balanced"
    elif kind == "ref":
        pins = len(f.keepers(b)) if pins_count else 0
        if e["count"] != len(f.owners(b)) + len(f.unmapped(b)) + pins:
            yield "ref_count_agrees"
    elif kind == "seal":
        if not earned(f, e, b, partial_seals):
            yield "seal_is_earned"
    elif kind == "hit":
        carried = frozenset[int]().union(*(s.slots for s in f.seals.get(b, []) if s.identity == e["hash"]))
        if not carried or not (slots_of(e, f.size) if "slots" in e else carried) <= carried:
            yield "hit_is_live"
    elif kind == "evict":
        if f.at_risk(b) and any(seal.identity == e["hash"] for seal in f.seals.get(b, [])):
            yield "hit_is_live"
    elif kind == "write":
        yield from broken_by_transfer(f, e, b) if name is None else broken_by_write(f, e, b)


def earned(f: Facts, e: Line, b: int, partial_seals: bool) -> bool:
    name, slots = e.get("branch"), slots_of(e, f.size)
    whole = partial_seals or len(slots) == f.size
    if name is None:
        return whole and bool(f.owners(b) or f.keepers(b))
    branch = f.branch(name)
    return whole and b in branch.table.values() and f.place(name, b) * f.size + max(slots) < branch.length


def broken_by_write(f: Facts, e: Line, b: int) -> Iterator[str]:
    name, slots, (lo, hi) = e["branch"], slots_of(e, f.size), e["slots"]
    table = f.branch(name).table
    if b not in table.values():
        yield "write_within_table"
        return
    first = e["tokens"][0] if "tokens" in e else f.place(name, b) * f.size + lo
    sealed = slots & f.sealed(b)
    if sealed:
        places = {s.place for s in f.seals[b] if s.place is not None}
        known = f.branch(name).length
        drafts = {slot for slot in slots if f.branch(name).proposed and first + slot - lo >= known}
        if not sealed <= f.covered(name, b) - drafts or any(p * f.size + lo != first for p in places):
            yield "sealed_is_immutable"
            return
    elif "tokens" in e:
        first, last = e["tokens"]
        if table.get(first // f.size) != b or first % f.size != lo or last - first != hi - lo:
            yield "write_within_table"
    again = slots & f.written.get(b, set())
    alone = f.owners(b) == {name}
    together = slots <= f.agreed(b) and again <= f.covered(name, b)
    if not (alone or together) or f.freezers(b) - {name}:
        yield "exclusive_write"


def broken_by_transfer(f: Facts, e: Line, b: int) -> Iterator[str]:
    holder, slots = e["holder"], slots_of(e, f.size)
    unpinned = b in f.held and len(f.owners(b)) <= 1
    allowed = holder in f.keepers(b) if holder in f.pinned_before else unpinned
    again = slots & f.written.get(b, set())
    if not allowed:
        yield "write_within_table"
    elif slots & f.sealed(b) & again:
        yield "sealed_is_immutable"
    elif (len(f.owners(b)) > 1 and (again or not slots <= f.agreed(b))) or f.freezers(b) - {holder}:
        yield "exclusive_write"


def broken_by_copy(f: Facts, e: Line) -> Iterator[str]:
    name, src, dst, slots = e["branch"], e["src"], e["dst"], slots_of(e, f.size)
    owns = name in f.owners(src)
    hit = any(h.branch == name for h in f.unmapped(src))
    if src not in f.lived or not (owns or hit or f.taken_for.get(src) == name or (name, src) in f.replaced):
        yield "entry_is_held"
    if dst not in f.held:
        return
    others = f.owners(dst) - {name}
    again = slots & f.written.get(dst, set())
    agree = slots <= f.agreed(dst) and not again
    theirs = name not in f.owners(dst) and (bool(others) or f.taken_for.get(dst, name) != name)
    left_out = (owns or (name, src) in f.replaced) and not f.visible(name, src, copy_place(f, name, src, dst)) <= slots
    if (others and not agree) or theirs or left_out:
        yield "private_copy_target"
    if slots & f.sealed(dst) & again:
        yield "sealed_is_immutable"
    if f.freezers(dst):
        yield "exclusive_write"


def copy_place(f: Facts, name: object, src: int, dst: int) -> int:
    table = f.branch(name).table.values()
    return (
        f.place(name, dst) if dst in table else f.place(name, src) if src in table else f.replaced.get((name, src), 0)
    )


def broken_at_rest(f: Facts) -> Iterator[str]:
    if any(not f.owners(b) and not f.keepers(b) for b in f.held):
        yield "no_leak"
    if any(kind != "cache" for _, _, _, kind in f.pins):
        yield "pins_balanced"
    if any(not f.sealed(b) <= f.written.get(b, set()) for b in f.seals):
        yield "seal_is_earned"


def first_breach(log: list[Line]) -> tuple[int, set[str]] | None:
    """The first line that breaks a rule, and the rules it breaks. The header is line 1."""
    header, *events = log
    partial = header["discipline"] == "append_only_cow"
    pins_count = header.get("ref_counts") == "owners+pins"
    for n, event in enumerate(events):
        rules = set(broken(facts(header, events[:n]), event, pins_count, partial))
        if rules:
            return n + 2, rules
    return None


def facts(header: Line, events: list[Line]) -> Facts:
    """Everything, from the first event on."""
    f = Facts(header["block_size"], header["blocks"])
    for event in events:
        perform(f, event)
    return f
