"""The state graph of a small scope: every state that is reached, and every step between two of them.

A step that breaks a rule leads to no state; the first of each obligation is kept as a breach, and every state that
breaks an invariant. With a symmetry, a node stands for a whole orbit, and a step's names are those of the member that
was kept.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvsan.checker.explore.explore import Prepared
from kvsan.checker.explore.module import build
from kvsan.checker.explore.packed import unpack
from kvsan.checker.explore.path import successors
from kvsan.checker.explore.replay import show
from kvsan.checker.explore.search import Limits, Search, search
from kvsan.spec.designs.settings import as_set
from kvsan.spec.lang.interpret import Plain, default, holds
from kvsan.spec.lang.symbolic import predicate

if TYPE_CHECKING:
    import networkx as nx

LOOKED_AT = 200_000
"""States that are counted before a graph is refused, so that the refusal can say how many there are."""


class Hairball(Exception):
    """Too much for the form that was asked for: the message says what to narrow."""


class NoGraphs(Exception):
    """networkx is not installed: `pip install kvsan[graph]`."""


@dataclass(frozen=True)
class Node:
    """entries: the variables that are neither derived nor ghosts, where they are not at their default. end: no step
    leads on. open: beyond the depth of the graph, not known."""

    number: int
    depth: int
    entries: dict[str, str]
    start: bool
    end: bool
    open: bool


@dataclass(frozen=True)
class Edge:
    source: int
    target: int
    action: str
    text: str


@dataclass(frozen=True)
class Breach:
    """A rule that a step from a state breaks, or, where the text is empty, the state itself."""

    source: int
    rule: str
    text: str


@dataclass(frozen=True)
class Graph:
    """Nodes in the order in which they were found, breadth first."""

    design: str
    scope: str
    symmetry: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    breaches: tuple[Breach, ...]


def graph(prepared: Prepared, most: int, depth: int | None = None) -> Graph:
    """The graph, up to a depth. Raises Hairball where it has more than `most` states, NoCompiler."""
    usual = Limits()
    limits = Limits(max(LOOKED_AT, most), depth=usual.depth if depth is None else depth - 1)
    module = build(prepared.generated.source)
    begun = [s.state for s in prepared.begun]
    found = search(prepared.model, prepared.generated, module, begun, limits, stop=False)
    if found.count > most:
        raise Hairball(narrow(prepared, found, most))
    width = prepared.model.layout.words
    rows = [tuple(found.states[n * width : (n + 1) * width].tolist()) for n in range(found.count)]
    edges = tuple(_edges(prepared, found, rows))
    breaches = tuple(_breaches(prepared, found, rows, {e.source for e in edges}))
    stuck = set(range(found.expanded)) - {e.source for e in edges} - {b.source for b in breaches}
    firsts = found.levels[1] if len(found.levels) > 1 else found.count
    nodes = tuple(
        Node(n, bisect_right(found.levels, n) - 1, _entries(prepared, row), n < firsts, n in stuck, n >= found.expanded)
        for n, row in enumerate(rows)
    )
    return Graph(prepared.design.name, as_set(prepared.scoped.settings), prepared.symmetry, nodes, edges, breaches)


def _edges(prepared: Prepared, found: Search, rows: list[tuple[int, ...]]) -> list[Edge]:
    numbers = {row: n for n, row in enumerate(rows)}
    edges = []
    for source in range(found.expanded):
        for code, _, orbit in successors(found, rows[source]):
            action, text = _step(prepared, code)
            edges.append(Edge(source, numbers[tuple(orbit.tolist())], action, text))
    return edges


def _step(prepared: Prepared, code: int) -> tuple[str, str]:
    action, values = prepared.model.decode(code)
    shown = ", ".join(show(p.type, value) for p, value in zip(action.params, values, strict=True))
    return action.name, f"{action.name}({shown})"


def _breaches(prepared: Prepared, found: Search, rows: list[tuple[int, ...]], leaving: set[int]) -> list[Breach]:
    """The first step that breaks each obligation, and every state that breaks an invariant: none of them leads on."""
    model, out = prepared.model, list[Breach]()
    for failure in found.failures:
        judge = prepared.generated.judges[failure.judge]
        if judge.kind in ("rule", "undefined") and failure.code >= 0:
            out.append(Breach(failure.at, judge.rule, _step(prepared, failure.code)[1]))
    facts = [(step.name, predicate(step, model.variables, model.sizes)) for step in model.invariants]
    for n in range(found.expanded):
        if n not in leaving:
            state = unpack(rows[n], model.layout)
            out += [Breach(n, name, "") for name, fact in facts if not holds(fact, model.variables, state)]
    return out


def _entries(prepared: Prepared, row: tuple[int, ...]) -> dict[str, str]:
    """What a state says, a variable at a time: `{"table": "r0,0=b0 r0,1=b1"}`."""
    state: Plain = unpack(row, prepared.model.layout)
    out = {}
    for v in prepared.design.spec.variables.values():
        cells = state.get(v.name, {})
        if v.derived or v.ghost or not cells:
            continue
        shown = []
        for index, value in sorted(cells.items()):
            at = ",".join(show(k, i) for k, i in zip(v.keys, index, strict=True))
            text = show(v.value, value)
            plain = text == "true" and default(v.value) is False  # a flag that is up is named, no more
            shown.append(at if plain and at else f"{at}={text}" if at else text)
        out[v.name] = " ".join(shown)
    return out


def narrow(prepared: Prepared, found: Search, most: int) -> str:
    """Why a graph is not drawn, and what would make it small enough."""
    more = "more than " if found.stopped == "the limit of states" else ""
    said = [f"{more}{found.count:,} states and {found.transitions:,} steps are a hairball; at most {most:,} are drawn"]
    fits = max((d for d, first in enumerate(found.levels) if first <= most), default=0)
    shallow = fits - 1 if fits else 0
    if shallow:
        said.append(f"--depth {shallow} keeps the first {found.levels[fits]:,} states")
    if prepared.symmetry != "full" and not prepared.symmetry_note:
        said.append("--symmetry full keeps one state of each orbit")
    said += [
        f"--set {name}={value - 1}"
        for name, value in prepared.scoped.settings.items()
        if name in ("branches", "blocks", "positions") and isinstance(value, int) and value > 1
    ]
    return "; ".join([said[0], "narrow it: " + ", ".join(said[1:])]) if said[1:] else said[0]


def networkx_graph(drawn: Graph) -> nx.MultiDiGraph[int | str]:
    """The graph for networkx: states by number, breaches by `violated RULE`.

    A node has `depth`, `start`, `end`, `open` and a string per variable (`s.table`), an edge its `action` and its
    `text`; the key of an edge is its number. Raises NoGraphs.
    """
    try:
        import networkx as nx
    except ModuleNotFoundError as error:
        raise NoGraphs("networkx is not installed") from error
    made: nx.MultiDiGraph[int | str] = nx.MultiDiGraph(design=drawn.design, scope=drawn.scope, symmetry=drawn.symmetry)
    for node in drawn.nodes:
        entries = {f"s.{name}": text for name, text in node.entries.items()}
        made.add_node(node.number, depth=node.depth, start=node.start, end=node.end, open=node.open, **entries)
    for number, edge in enumerate(drawn.edges):
        made.add_edge(edge.source, edge.target, key=number, action=edge.action, text=edge.text)
    for number, breach in enumerate(drawn.breaches, len(drawn.edges)):
        bad = f"violated {breach.rule}"
        made.add_node(bad, rule=breach.rule)
        made.add_edge(breach.source, bad, key=number, action=breach.text.partition("(")[0], text=breach.text)
    return made
