"""A state graph as text: DOT for Graphviz, GraphML for tools, Mermaid for a page."""

from __future__ import annotations

from collections.abc import Iterator

from kvsan.checker.explore.graph import Breach, Edge, Graph, Node, networkx_graph
from kvsan.checker.explore.sequence import escaped

MOST = {"dot": 300, "mermaid": 80, "graphml": 20_000}
"""States that each form takes: what can be read on a page, and what a tool lays out in reasonable time. Mermaid itself
stops at 500 edges."""


def drawn(graph: Graph, form: str) -> str:
    """The text in one of the forms of MOST. Raises NoGraphs."""
    match form:
        case "dot":
            return "\n".join(_dot(graph)) + "\n"
        case "mermaid":
            return "\n".join(_mermaid(graph)) + "\n"
        case "graphml":
            return _graphml(graph)
        case _:
            raise ValueError(form)


def _said(graph: Graph) -> str:
    return (
        f"{graph.design}  {graph.scope}  symmetry={graph.symmetry}: {len(graph.nodes)} states, {len(graph.edges)} steps"
    )


def _label(node: Node, newline: str) -> str:
    """A state in words; the empty state is one too."""
    return newline.join((f"{node.number}", *(f"{name} {text}" for name, text in node.entries.items())))


def _between(graph: Graph) -> dict[tuple[int, int | str], list[str]]:
    """The texts of the steps between two nodes, breaches by the name of their rule."""
    found: dict[tuple[int, int | str], list[str]] = {}
    both: tuple[Edge | Breach, ...] = (*graph.edges, *graph.breaches)
    for edge in both:
        target = edge.target if isinstance(edge, Edge) else edge.rule
        found.setdefault((edge.source, target), []).append(edge.text)
    return found


# --- DOT --------------------------------------------------------------------------------------------------------------


def _dot(graph: Graph) -> Iterator[str]:
    yield f"digraph {_quoted(graph.design)} {{"
    yield f"  label={_quoted(_said(graph))}; node [shape=box, fontsize=9]; edge [fontsize=8];"
    for node in graph.nodes:
        style = "bold" if node.start else "dashed" if node.open else "solid"
        ends = ", peripheries=2" if node.end else ""
        yield f"  {node.number} [label={_quoted(_label(node, chr(10)))}, style={style}{ends}];"
    for rule in dict.fromkeys(b.rule for b in graph.breaches):
        yield f"  {_quoted(rule)} [label={_quoted(f'violated {rule}')}, color=red];"
    for (source, target), texts in _between(graph).items():
        to = _quoted(target) if isinstance(target, str) else str(target)
        yield f"  {source} -> {to} [label={_quoted(chr(10).join(texts))}];"
    yield "}"


def _quoted(text: str) -> str:
    """A DOT string: quotes and backslashes escaped, lines kept."""
    body = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{body}"'


# --- Mermaid ----------------------------------------------------------------------------------------------------------


def _mermaid(graph: Graph) -> Iterator[str]:
    yield f"%% {_said(graph)}"
    yield "flowchart TD"
    for node in graph.nodes:
        text = _shown(_label(node, "\n"))
        yield f"    s{node.number}([{text}])" if node.start else f"    s{node.number}[{text}]"
    rules = list(dict.fromkeys(b.rule for b in graph.breaches))
    for k, rule in enumerate(rules):
        yield f"    bad{k}{{{{{_shown(f'violated {rule}')}}}}}"
    for (source, target), texts in _between(graph).items():
        to = f"bad{rules.index(target)}" if isinstance(target, str) else f"s{target}"
        shown = "\n".join(t for t in texts if t)
        yield f"    s{source} -->|{_shown(shown)}| {to}" if shown else f"    s{source} --> {to}"
    yield "    classDef ended stroke-width:3px"
    yield "    classDef cut stroke-dasharray:4"
    yield "    classDef bad fill:#fdd,stroke:#c00"
    for name, members in (
        ("ended", [f"s{n.number}" for n in graph.nodes if n.end]),
        ("cut", [f"s{n.number}" for n in graph.nodes if n.open]),
        ("bad", [f"bad{k}" for k in range(len(rules))]),
    ):
        if members:
            yield f"    class {','.join(members)} {name}"


def _shown(text: str) -> str:
    """Text in quotes, as Mermaid's flowcharts take it."""
    return '"' + "<br/>".join(escaped(line).replace('"', "#34;") for line in text.split("\n")) + '"'


# --- GraphML ----------------------------------------------------------------------------------------------------------


def _graphml(graph: Graph) -> str:
    made = networkx_graph(graph)
    import networkx as nx

    return "\n".join(nx.generate_graphml(made, named_key_ids=True)) + "\n"
