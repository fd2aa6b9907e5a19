"""Order in the state says the same as device queues do, launch by launch, on random programs."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any  # a design's state at run time

import pytest
from fifo import Launch, Learn, Order, Program, Queues
from kvsan.spec.designs.catalog import PAGED_COW
from kvsan.spec.designs.device import (
    COMPUTE,
    COPIES,
    COPY_WORK,
    STEP_WORK,
    forget_ordered,
    hand_out,
    launch_copy,
    launch_step,
    learn,
    order_after,
)
from kvsan.spec.lang.surface import judged
from kvsan.spec.ownership.blocks import free
from kvsan.spec.ownership.branches import admit, map, unmap
from kvsan.spec.ownership.state import Block, Branch
from plain_search import Model

STREAMS = (COMPUTE, COPIES)
BRANCHES, SIZE = 2, 2
ORDER = {"accesses_ordered", "copy_precedes_use", "no_reuse_in_flight", "read_is_initialised", "source_stable"}


@dataclass
class Device:
    """Takes random device work; every branch has a block at each of its positions.

    forget: footprints of ordered work are forgotten after each launch, as designs do.
    """

    dice: random.Random
    forget: bool
    positions: int
    program: list[Launch | Order | Learn] = field(default_factory=list)
    said: dict[int, set[str]] = field(default_factory=dict)
    launched: dict[tuple[Any, Branch], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        settings = PAGED_COW.at(branches=BRANCHES, blocks=BRANCHES * self.positions + 1, positions=self.positions)
        model = Model(PAGED_COW, settings)
        judged(model.initial[0], model.state)
        self.s: Any = model.state
        for r in range(BRANCHES):
            judged(admit, self.s, Branch(r), self.positions * SIZE)
            for p in range(self.positions):
                self.fill(Branch(r), p, Block(r * self.positions + p))

    def fill(self, r: Branch, p: int, b: Block) -> None:
        judged(hand_out, self.s, b, r)
        judged(map, self.s, r, p, b)

    def launch(self, key: tuple[Any, Branch], work: Launch, step: Any, *arguments: object) -> None:
        number = len(self.program)
        self.program.append(work)
        self.launched[key] = number
        told = [j for j in judged(step, self.s, *arguments) if not j.holds and j.rule.name in ORDER]
        self.said[number] = {j.rule.name for j in told if "not written" not in j.message}

    def step(self) -> None:
        r, t = Branch(self.dice.randrange(BRANCHES)), self.dice.choice(STREAMS)
        if self.s.running[STEP_WORK, r]:
            return
        first = self.dice.randrange(self.positions * SIZE)
        end = self.dice.randrange(first + 1, self.positions * SIZE + 1)
        upto = self.dice.randrange(self.positions * SIZE + 1)
        at = {k: (self.s.table[r, k // SIZE].index, k % SIZE) for k in range(self.positions * SIZE)}
        work = Launch(str(t), frozenset(at[k] for k in range(upto)), frozenset(at[k] for k in range(first, end)))
        self.launch((STEP_WORK, r), work, launch_step, r, first, end, upto, t)

    def copy(self) -> None:
        r, t = Branch(self.dice.randrange(BRANCHES)), self.dice.choice(STREAMS)
        src, dst = self.dice.sample(range(BRANCHES * self.positions + 1), 2)
        hi = self.dice.randrange(1, SIZE + 1)
        if self.s.running[COPY_WORK, r] or not (self.s.held[Block(src)] and self.s.held[Block(dst)]):
            return
        work = Launch(str(t), frozenset((src, k) for k in range(hi)), frozenset((dst, k) for k in range(hi)))
        self.launch((COPY_WORK, r), work, launch_copy, r, Block(src), Block(dst), hi, t)

    def order(self) -> None:
        later, earlier = self.dice.sample(STREAMS, 2)
        judged(order_after, self.s, later, earlier)
        self.program.append(Order(str(later), str(earlier)))

    def learn(self) -> None:
        running = [(w, q) for w, q in self.launched if self.s.running[w, q]]
        if running:
            w, q = self.dice.choice(running)
            judged(learn, self.s, w, q)
            self.program.append(Learn(self.launched[w, q]))

    def recycle(self) -> None:
        """A branch's block goes back to the pool, and another takes its place."""
        r, p = Branch(self.dice.randrange(BRANCHES)), self.dice.randrange(self.positions)
        old = self.s.table[r, p]
        spare = next(Block(n) for n in range(BRANCHES * self.positions + 1) if not self.s.held[Block(n)])
        judged(unmap, self.s, r, p, old)
        judged(free, self.s, old)
        self.fill(r, p, spare)

    def run(self, length: int) -> None:
        moves = [
            self.step,
            self.step,
            self.copy,
            self.copy,
            self.recycle,
            self.order,
            self.order,
            self.order,
            self.learn,
        ]
        for _ in range(length):
            self.dice.choice(moves)()
            if self.forget:
                judged(forget_ordered, self.s, *STREAMS)
            if any(self.said.values()):  # what comes after a breach is not judged
                return


def verdicts(seed: int, forget: bool, positions: int) -> tuple[Device, Queues]:
    device = Device(random.Random(seed), forget, positions)
    device.run(12)
    program: Program = tuple(device.program)
    return device, Queues(program)


def agree(seeds: range, forget: bool, positions: int) -> tuple[int, int]:
    """How many programs race, and how many do not."""
    racy = 0
    for seed in seeds:
        device, queues = verdicts(seed, forget, positions)
        for number, rules in device.said.items():
            assert bool(rules) == queues.races(number), (seed, number, device.program, rules)
        racy += any(device.said.values())
    return racy, len(seeds) - racy


@pytest.mark.parametrize("forget", [pytest.param(False, marks=[pytest.mark.slow]), True], ids=["kept", "forgotten"])
def test_order_in_the_state_is_the_order_of_queues(forget: bool) -> None:
    racy, right = agree(range(150), forget, 1)
    assert racy >= 10 and right >= 10


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_order_in_the_state_is_the_order_of_queues_at_length(part: int) -> None:
    racy, right = agree(range(1000 * part + 200, 1000 * part + 1200), part % 2 == 0, 1 + part // 2)
    assert racy >= 100 and right >= 100
