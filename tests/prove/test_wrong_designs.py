"""No proof of a small design that is wrong: each breaks in a scope that somebody may ask the explorer for."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("z3")

import kvsan.checker.prove.induction
import kvsan.checker.prove.second
import z3
from attempts import open_ends
from kvsan.checker.prove.bounded import bounded
from kvsan.checker.prove.induction import induction
from kvsan.checker.prove.prove import Proof, prove
from kvsan.checker.prove.second import opinions
from kvsan.checker.prove.system import BadDesign, System, system, with_facts
from kvsan.checker.report.proof import as_text
from kvsan.spec.lang.interpret import Plain, holds
from kvsan.spec.lang.ir import Step
from kvsan.spec.lang.symbolic import predicate

HEAD = '''"""A small design."""

from kvsan.spec.lang.surface import {words}
{more}from kvsan.spec.ownership.blocks import alloc, free  # noqa: F401
from kvsan.spec.ownership.state import Block, Branch, Count, Owners, Ownership, Pos, Slot, Tokens  # noqa: F401

SETTINGS = {{"branches": 2, "blocks": 2, "block_size": 2, "positions": 2}}


class Small(Ownership):
    """Its state."""

'''
WORDS = ("Const", "Map", "Set", "action", "auxiliary", "counted", "excess", "initial", "invariant", "members", "only",
         "require", "reset", "row", "some", "span")  # fmt: skip
LABELS = '''    """So it is.

    Source: ours.
    Catches: nothing.
    Except: nowhere.
    Deviates: nowhere.
    """
'''

UNWRAPS = '''    last: Map[Branch, Block | None]
    seen: Map[Block, bool]


@initial
def begin(s: Small) -> None:
    """Nothing."""
    s.seen[Block(0)] = False


@action
def remember(s: Small, r: Branch, b: Block) -> None:
    """A branch remembers a block."""
    s.last[r] = b


@action
def look(s: Small, r: Branch) -> None:
    """It looks at what it remembers, if that was not looked at."""
    require(not s.seen[some(s.last[r])])

    s.last[r] = None


@action
def mark(s: Small, r: Branch) -> None:
    """It marks what it remembers."""
    s.seen[some(s.last[r])] = True
'''

GROWS = '''    size: Map[Pos, Tokens]


@initial
def begin(s: Small) -> None:
    """Nothing."""
    s.size[0] = 0


@action
def grow(s: Small, p: Pos) -> None:
    """One more, with no end."""
    s.size[p] = s.size[p] + 1


@invariant
def both_grow(s: Small) -> bool:
LABELS
    return s.size[0] >= 0 and s.size[1] >= 0
'''

SAME_NAME = '''    chosen: Block | None
    good: bool


@initial
def begin(s: Small) -> None:
    """All is well."""
    s.good = True


@action
def choose(s: Small, b: Block) -> None:
    """A block is chosen."""
    s.chosen = b


@action
def judge(s: Small, chosen: Block) -> None:
    """Any block is compared with it."""
    require(s.chosen is not None)

    s.good = some(s.chosen) == chosen


@invariant
def all_is_well(s: Small) -> bool:
LABELS
    return s.good
'''

FORGETS = '''    last: Block | None
    lost: bool


@initial
def begin(s: Small) -> None:
    """One block is remembered."""
    s.last = Block(0)


@action
def forget(s: Small, b: Block) -> None:
    """It is not any more."""
    require(s.last == b)

    s.last = None
    s.lost = True


@invariant
def one_is_remembered(s: Small) -> bool:
LABELS
    return s.last is not None and (s.lost or not s.lost)
'''

TURNS = '''    lane: Map[Branch, Pos, bool]
    flag: Map[Block, Pos, bool]


@initial
def begin(s: Small) -> None:
    """Every flag is set, in every lane."""
    for b in members(Block, s):
        s.flag[b, 0], s.flag[b, 1] = True, True
    for r in members(Branch, s):
        s.lane[r, 0], s.lane[r, 1] = True, True


@action
def drop(s: Small, b: Block, p: Pos, q: Pos) -> None:
    """A block has at least one of its flags."""
    require(p != q and s.flag[b, q])

    s.flag[b, p] = False


@invariant
def every_lane_is_used(s: Small) -> bool:
LABELS
    return all(s.lane[r, 0] and s.lane[r, 1] for r in members(Branch, s))


@invariant
def one_lane_is_whole(s: Small) -> bool:
LABELS
    return all(any(all(s.flag[b, p] for b in members(Block, s)) for p in row(s.lane, r)) for r in members(Branch, s))
'''

NUMBER = '''    blocks: Const[Count]
    bad: bool


@initial
def begin(s: Small) -> None:
    """All is well."""
    s.bad = False


@action
def go(s: Small) -> None:
    """With many blocks something goes wrong."""
    require(s.blocks > 9)

    s.bad = True


@invariant
def all_is_well(s: Small) -> bool:
LABELS
    return not s.bad
'''

COUNTED_START = '''    total: Count
    many: bool
    bad: bool


@initial
def begin(s: Small) -> None:
    """It counts its blocks."""
    for b in members(Block, s):
        s.total += 1
        if s.total == 10:
            s.many = True


@action
def go(s: Small) -> None:
    """With many blocks something goes wrong."""
    require(s.many)

    s.bad = True


@invariant
def all_is_well(s: Small) -> bool:
LABELS
    return not s.bad
'''

OTHER_START = '''    blocks: Const[Count]
    bad: Map[Branch, bool]


@initial
def begin(s: Small) -> None:
    """All is well."""
    s.bad[Branch(0)] = False


@initial
def begin_large(s: Small) -> None:
    """With blocks enough it begins otherwise."""
    require(s.blocks > 9)

    s.bad[Branch(0)] = True


@action
def pass_on(s: Small, r: Branch, q: Branch) -> None:
    """It goes from one to another."""
    require(s.bad[r])

    s.bad[q] = True


@invariant
def all_is_well(s: Small) -> bool:
LABELS
    return all(not s.bad[r] for r in members(Branch, s))
'''

SECOND_BRANCH = '''    late: Map[Branch, bool]
    told: bool


@initial
def begin(s: Small) -> None:
    """The second branch is late."""
    s.late[Branch(1)] = True


@action
def tell(s: Small, r: Branch) -> None:
    """Somebody is late, and it is told."""
    require(s.late[r])

    s.told = True


@invariant
def only_the_late_are_told_of(s: Small) -> bool:
LABELS
    return not s.told or any(s.late[r] for r in members(Branch, s))
'''

PAST_THE_END = '''    size: Map[Branch, Tokens]
    fits: Map[Pos, bool]


@initial
def begin(s: Small) -> None:
    """Nothing."""
    s.fits[0], s.fits[1] = True, True


@action
def grow(s: Small, r: Branch) -> None:
    """There are four tokens, and two positions."""
    require(s.size[r] < 4)

    s.size[r] += 1


@invariant
def both_fit(s: Small) -> bool:
LABELS
    return s.fits[0] and s.fits[1]


@invariant
def each_fits(s: Small) -> bool:
LABELS
    return all(s.fits[s.size[r]] for r in members(Branch, s))
'''

SEEN_BY_OTHERS = '''    used: Map[Block, Branch, bool]
    listed: Map[Branch, Block, bool]
    done: bool


@initial
def begin(s: Small) -> None:
    """Everything is set."""
    for b in members(Block, s):
        for r in members(Branch, s):
            s.used[b, r], s.listed[r, b] = True, True


@action
def clear(s: Small, r: Branch, c: Block) -> None:
    """After the turn of block c there is nothing in its row."""
    require(not s.done)

    s.done = True
    for b in row(s.listed, r):
        for q in row(s.used, c):
            s.used[b, q] = False


@invariant
def all_are_listed(s: Small) -> bool:
LABELS
    return all(s.listed[r, b] for b in members(Block, s) for r in members(Branch, s))


@invariant
def none_is_used_then(s: Small) -> bool:
LABELS
    return all(s.used[b, q] != s.done for b in members(Block, s) for q in members(Branch, s))
'''


ROWS = '''    lane: Map[Branch, Pos, bool]
    clean: Map[Pos, bool]


@initial
def begin(s: Small) -> None:
    """One position is clean."""
    s.clean[0] = True


@action
def go_in(s: Small, r: Branch, p: Pos) -> None:
    """A branch goes into a lane, clean or not."""
    s.lane[r, p] = True


@invariant
def lanes_are_clean(s: Small) -> bool:
LABELS
    return all(s.clean[p] for r in members(Branch, s) for p in row(s.lane, r))
'''

TWICE = '''    begun: bool


@initial
def begin(s: Small) -> None:
    """Nothing."""
    s.begun = True


@action
def free_twice(s: Small, r: Branch, b: Block) -> None:
    """A block is taken, and given back twice."""
    require(s.begun and not s.held[b] and s.owners[b] == 0)

    alloc(s, b, r)
    free(s, b)
    free(s, b)
'''


ALL_ALIKE = '''    mine: Map[Branch, Block | None]


@initial
def begin(s: Small) -> None:
    """All branches have the same block."""
    for r in members(Branch, s):
        s.mine[r] = Block(0)


@action
def move(s: Small, r: Branch, b: Block) -> None:
    """A branch takes any other."""
    s.mine[r] = b


@invariant
def one_serves_all(s: Small) -> bool:
LABELS
    return any(all(s.mine[r] == b for r in members(Branch, s)) for b in members(Block, s))
'''

NONE_YET = '''    mine: Map[Branch, Block | None]
    dirty: Map[Block, bool]


@initial
def begin(s: Small) -> None:
    """Nobody has a block."""
    s.dirty[Block(0)] = False


@action
def soil(s: Small, b: Block) -> None:
    """A block is dirty, if nobody has it."""
    s.dirty[b] = True


@action
def take_it(s: Small, r: Branch, b: Block) -> None:
    """A branch takes a block."""
    require(s.dirty[b])

    s.mine[r] = b


@invariant
def nobody_has_one(s: Small) -> bool:
LABELS
    return all(s.mine[r] != b for r in members(Branch, s) for b in members(Block, s))


@invariant
def all_are_clean(s: Small) -> bool:
LABELS
    return all(not s.dirty[b] for b in members(Block, s))
'''

BELOW = '''    size: Map[Branch, Tokens]
    spent: bool


@initial
def begin(s: Small) -> None:
    """Nothing."""
    s.spent = False


@action
def grow(s: Small, r: Branch) -> None:
    """One more, up to three."""
    require(s.size[r] < 3)

    s.size[r] += 1


@action
def spend_three(s: Small, r: Branch) -> None:
    """Three are spent, or what there is."""
    require(s.size[r] < 3)

    s.size[r] = excess(s.size[r], 3)
    s.spent = s.size[r] == 0


@invariant
def some_is_left(s: Small) -> bool:
LABELS
    return not s.spent
'''


TAKEN_OUT = '''    parts: Map[Block, Set[Slot]]


@initial
def begin(s: Small) -> None:
    """All parts are there."""
    for b in members(Block, s):
        s.parts[b] = span(0, 2)


@action
def take_out(s: Small, b: Block, p: Slot) -> None:
    """One part is taken out."""
    s.parts[b] = s.parts[b] - only(p)


@invariant
def the_first_is_there(s: Small) -> bool:
LABELS
    return all(0 in s.parts[b] for b in members(Block, s))
'''

COUNTS = '''    on: Map[Branch, bool]
    boss: Map[Branch, Branch | None]
    total: Count


@initial
def begin(s: Small) -> None:
    """Nobody is on, and nobody has a boss."""
    s.total = 0


@action
def appoint(s: Small, r: Branch, q: Branch) -> None:
    """A branch gets a boss."""
    require(r != q)

    s.boss[r] = q


@action
def two_come(s: Small, r: Branch, q: Branch) -> None:
    """Two come, or one twice."""
    require(not s.on[r] and not s.on[q])

    s.on[r], s.on[q] = True, True
    s.total += 2


@action
def boss_comes(s: Small, r: Branch) -> None:
    """The boss comes, and is not counted."""
    require(s.boss[r] is not None and s.boss[r] != r)

    s.on[some(s.boss[r])] = True


@action
def count_once_more(s: Small) -> None:
    """Nobody comes, and is counted."""
    s.total += 1


@counted
def total_counted(s: Small, r: Branch) -> bool:
LABELS
    return s.on[r]


@invariant
def somebody_is_counted(s: Small) -> bool:
LABELS
    return s.total == 0 or any(s.on[r] for r in members(Branch, s))
'''
MISCOUNTED = {("total_counted", name) for name in ("two_come", "boss_comes", "count_once_more")}

HEARD = '''    late: Map[Branch, bool]
    told: bool
    heard: bool


@initial
def begin(s: Small) -> None:
    """The second branch is late."""
    s.late[Branch(1)] = True


@action
def tell(s: Small, r: Branch) -> None:
    """Somebody is late, and it is told."""
    require(s.late[r])

    s.told = True


@action
def hear(s: Small) -> None:
    """What is told is heard."""
    require(s.told)

    s.heard = True


@auxiliary
def only_the_late_are_told_of(s: Small) -> bool:
LABELS
    return not s.told or any(s.late[r] for r in members(Branch, s))


@invariant
def only_the_late_are_heard_of(s: Small) -> bool:
LABELS
    return not s.heard or not all(not s.late[r] for r in members(Branch, s))
'''


WIPED_BY_OTHERS = '''    clean: Map[Block, bool]
    listed: Map[Branch, Block, bool]
    was_clean: Map[Branch, Block, bool]
    done: Map[Branch, bool]
    begun: bool


@initial
def begin(s: Small) -> None:
    """All blocks are clean and listed."""
    for b in members(Block, s):
        s.clean[b] = True
        for r in members(Branch, s):
            s.listed[r, b] = True


@action
def wipe(s: Small, r: Branch, c: Block) -> None:
    """After the turn of block c it is as it was at first."""
    require(not s.begun)

    s.begun, s.done[r] = True, True
    for b in row(s.listed, r):
        s.was_clean[r, b] = s.clean[c]
        reset(s, b)


@invariant
def all_are_listed(s: Small) -> bool:
LABELS
    return all(s.listed[r, b] for b in members(Block, s) for r in members(Branch, s))


@invariant
def all_are_clean_before(s: Small) -> bool:
LABELS
    return s.begun or all(s.clean[b] for b in members(Block, s))


@invariant
def all_were_clean(s: Small) -> bool:
LABELS
    return all(not s.done[r] or s.was_clean[r, b] for b in members(Block, s) for r in members(Branch, s))
'''

NAMED_UNSEEN = '''    mine: Map[Branch, Block | None]
    boss: Map[Branch, Branch | None]


@initial
def begin(s: Small) -> None:
    """Nobody has anything."""
    s.mine[Branch(0)] = None


@action
def appoint(s: Small, r: Branch, q: Branch) -> None:
    """A branch gets a boss."""
    require(r != q and s.boss[r] is None)

    s.boss[r] = q


@action
def get(s: Small, r: Branch, b: Block) -> None:
    """A branch takes a free block."""
    require(s.mine[r] is None and not s.held[b])

    alloc(s, b, r)
    s.mine[r] = b


@action
def share(s: Small, r: Branch) -> None:
    """Its boss has it too."""
    require(s.mine[r] is not None and s.boss[r] is not None)

    s.mine[some(s.boss[r])] = s.mine[r]


@action
def give_back(s: Small, r: Branch) -> None:
    """It goes back."""
    require(s.mine[r] is not None)

    free(s, some(s.mine[r]))
    s.mine[r] = None
'''

OWNED_BY_NOBODY = '''    on: bool


@initial
def begin(s: Small) -> None:
    """Nothing."""
    s.on = True


@action
def tamper(s: Small, r: Branch, b: Block) -> None:
    """A count is changed, and nobody owns the block for it."""
    require(s.on and not s.held[b])

    alloc(s, b, r)
    s.owners[b] = 1


@action
def put_back(s: Small, b: Block) -> None:
    """A block that nobody owns goes back."""
    require(s.held[b] and s.owners[b] == 0)

    free(s, b)


@action
def put_in(s: Small, r: Branch, b: Block) -> None:
    """A block goes into a table."""
    require(s.held[b] and s.table[r, 0] is None and s.owners[b] < 2)

    map(s, r, 0, b)
'''
LEDGER = """from kvsan.spec.designs.start import owners_counted, places_counted  # noqa: F401
from kvsan.spec.ownership.branches import map
"""


TWICE_OF_NONE = '''    last: Block | None


@initial
def begin(s: Small) -> None:
    """Nothing."""
    s.last = None


@action
def note(s: Small, b: Block) -> None:
    """A block is noted."""
    s.last = b


@action
def free_twice(s: Small, r: Branch, b: Block) -> None:
    """A block is taken, and given back twice where none is noted."""
    require(not s.held[b] and s.owners[b] == 0)

    alloc(s, b, r)
    free(s, b)
    if s.last is None:
        free(s, b)
    s.last = None
'''


def system_of(folder: Path, text: str, more: str = "") -> System:
    path, whole = folder / "small.py", text.replace("LABELS\n", LABELS)
    words = ", ".join(w for w in WORDS if w in whole)
    path.write_text(HEAD.format(words=words, more=more) + whole)
    return system(with_facts(str(path)))


def proof_of(folder: Path, text: str) -> Proof:
    return prove(system_of(folder, text), explore=False)


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        (UNWRAPS, {("defined", "look"), ("defined", "mark")}),  # a step is not defined for being defined
        (GROWS, {("defined", "grow")}),
        (SAME_NAME, {("all_is_well", "judge")}),  # a parameter with the name of a variable is not that variable
        (FORGETS, {("one_is_remembered", "forget")}),
        (TURNS, {("one_lane_is_whole", "drop")}),  # for all blocks one flag, or for all the other: not one of them each
        (PAST_THE_END, {("each_fits", "grow")}),  # an invariant is to be defined, too
        (ROWS, {("lanes_are_clean", "go_in")}),  # an invariant depends on the rows that it goes through
        (ALL_ALIKE, {("one_serves_all", "move")}),  # what holds of all inside of what holds of one is not so for free
        (NONE_YET, {("all_are_clean", "soil")}),  # none is no member
        (BELOW, {("some_is_left", "spend_three")}),  # what is less than nothing is nothing
        (TAKEN_OUT, {("the_first_is_there", "take_out")}),
        (COUNTS, {*MISCOUNTED, ("somebody_is_counted", "count_once_more")}),
        (TWICE, {("free_once", "free_twice")}),  # what the first obligation of a step is not alone
    ],
)
def test_a_step_that_the_explorer_breaks_is_not_proved(text: str, failed: set[tuple[str, str]], tmp_path: Path) -> None:
    found = proof_of(tmp_path, text)
    assert (found.verdict, open_ends(found)) == ("UNKNOWN", failed)


@pytest.mark.parametrize(
    "spent",
    [{"spend": 1}, {"deadline": 0.0}],  # the solver may spend nothing; there is no time
)
def test_what_was_not_shown_is_unknown(spent: dict[str, float], tmp_path: Path) -> None:
    made = system_of(tmp_path, PAST_THE_END)
    results, _ = induction(made.actions[0], made.facts, made.variables, made.sizes, **spent)  # type: ignore[arg-type]
    assert {r.status for r in results if r.rule == "each_fits"} == {"unknown"}
    assert Proof(made, results=results).verdict == "UNKNOWN"


def test_a_proof_that_does_not_end_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kvsan.checker.prove.induction, "TURNS", 0)
    found = proof_of(tmp_path, PAST_THE_END)
    assert (found.verdict, found.failed) == ("UNKNOWN", [])


@pytest.mark.parametrize(
    ("text", "action", "why"),
    [
        (SEEN_BY_OTHERS, "clear", "turns share `used`"),
        (WIPED_BY_OTHERS, "wipe", "turns see more than their own member"),
    ],
)
def test_a_loop_whose_turns_see_what_others_change_is_left_out(
    text: str, action: str, why: str, tmp_path: Path
) -> None:
    found = proof_of(tmp_path, text)
    assert (found.verdict, set(found.left)) == ("UNKNOWN", {action})
    assert why in found.left[action]


@pytest.mark.parametrize(
    ("text", "names"),
    [(NUMBER, {"blocks"}), (COUNTED_START, {"total"}), (OTHER_START, {"blocks"})],
)
def test_what_needs_many_blocks_to_go_wrong_is_proved_of_no_other_number(
    text: str, names: set[str], tmp_path: Path
) -> None:
    found = proof_of(tmp_path, text)
    assert (found.verdict, {name for name, _ in found.varying}) == ("UNKNOWN", names)
    assert "and with more it leaves " in as_text(found, "")


@pytest.mark.parametrize("text", [SECOND_BRANCH, HEARD])
def test_a_right_design_whose_start_names_any_branch_of_its_scope_is_proved(text: str, tmp_path: Path) -> None:
    assert proof_of(tmp_path, text).verdict == "HOLDS"


@pytest.mark.parametrize(
    ("text", "more", "rule", "trace"),
    [
        (TWICE, "", "free_once", ("free_once at free_twice",)),
        # the boss of a branch is none of those by whom it is counted who names a block
        (NAMED_UNSEEN, "", "free_once", ("appoint", "get", "mine at share")),
        # what is none after a step is seen, too
        (TWICE_OF_NONE, "", "free_once", ("free_once at free_twice",)),
        (OWNED_BY_NOBODY, LEDGER, "owners_counted", ("owners_counted at tamper",)),
    ],
)
def test_a_second_opinion_does_not_prove_a_wrong_design(
    text: str, more: str, rule: str, trace: tuple[str, ...], tmp_path: Path
) -> None:
    (found,) = opinions(system_of(tmp_path, text, more), (rule,), budget=60.0)
    assert (found.status, found.trace) == ("broken", trace)


def test_what_spacer_says_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its invariant says nothing here, and nothing is enumerated: there is no proof."""
    monkeypatch.setattr(kvsan.checker.prove.second, "spacer", lambda *_: lambda _: z3.BoolVal(True))
    monkeypatch.setattr(kvsan.checker.prove.second, "cover", lambda *_: None)
    (found,) = opinions(system_of(tmp_path, TWICE), ("free_once",), budget=60.0)
    assert found.status == "unknown"


def test_a_step_that_is_not_defined_is_found_within_a_bound(tmp_path: Path) -> None:
    made = system_of(tmp_path, GROWS)  # up to four tokens
    assert [bounded(made.design, made.scoped, limit).depth for limit in (4, 5)] == [None, 5]
    assert bounded(made.design, made.scoped, 5).broken == ("defined",)


def test_the_start_that_is_looked_for_has_none_where_the_example_has(tmp_path: Path) -> None:
    made = system_of(tmp_path, UNWRAPS)
    example = next(r.example for r in prove(made, explore=False).failed if r.action == "mark")
    assert example is not None and dict(example.before) == {"last[r0]": "None"}
    looked_for = predicate(
        Step("", "invariant", "", (), (), None, "", value=example.start), made.variables, made.scoped.sizes
    )
    states: tuple[Plain, ...] = ({}, {"last": {(1,): 0}}, {"last": {(0,): 0, (1,): 1}})
    assert [holds(looked_for, made.variables, state) for state in states] == [True, True, False]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ((("Map[Pos,", "Map[Owners,"),), "size is indexed by 0..branches, which has no end"),
        (
            (
                ("@invariant", "@auxiliary"),
                ("grow(s: Small)", "grow(s: Small, n: Owners)"),
                (">= 0 and", ">= 0 * n and"),
            ),
            "n of both_grow ranges over 0..branches, which has no end",
        ),
    ],
)
def test_what_has_no_end_is_not_written_out(changes: tuple[tuple[str, str], ...], said: str, tmp_path: Path) -> None:
    text = GROWS
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    with pytest.raises(BadDesign, match=said):
        system_of(tmp_path, text)


def test_what_is_none_after_a_step_is_told(tmp_path: Path) -> None:
    (found,) = proof_of(tmp_path, FORGETS).failed
    assert found.example is not None
    assert (found.example.before, found.example.after) == ((("last", "b0"),), (("last", "None"),))
