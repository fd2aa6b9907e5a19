"""The state graph of a small scope says what the search counts, in forms that other programs read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kvsan.checker.command.export import Request, run
from kvsan.checker.command.usage import Refused
from kvsan.checker.explore.design import find, scoped
from kvsan.checker.explore.draw import drawn
from kvsan.checker.explore.explore import explore, prepare
from kvsan.checker.explore.graph import Graph, Hairball, graph, networkx_graph

pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")

MACHINE = str(Path(__file__).parent / "designs" / "tail_machine.py")
TWO = {"branches": "2", "blocks": "4"}


def made(symmetry: str, mutant: str = "", most: int = 200, depth: int | None = None) -> Graph:
    design = find(MACHINE)
    return graph(prepare(design, scoped(design, TWO, mutant=mutant), symmetry), most, depth)


@pytest.fixture(scope="module")
def whole() -> Graph:
    return made("none")


@pytest.fixture(scope="module")
def wrong() -> Graph:
    return made("full", "shared_append")


def test_the_graph_has_the_states_and_transitions_that_other_checkers_count(whole: Graph) -> None:
    assert (len(whole.nodes), len(whole.edges)) == (100, 296)
    assert max(n.depth for n in whole.nodes) == 9
    assert [n.number for n in whole.nodes if n.start] == [0]
    assert [n.entries for n in whole.nodes if n.end] == [{}]  # every branch is gone


def test_an_edge_leads_one_step_deeper_at_most(whole: Graph) -> None:
    depths = [n.depth for n in whole.nodes]
    assert all(depths[e.target] <= depths[e.source] + 1 for e in whole.edges)
    entered = {e.target for e in whole.edges if depths[e.target] == depths[e.source] + 1}
    assert entered == set(range(1, 100))


def test_a_node_says_what_holds_and_an_edge_what_is_done(whole: Graph) -> None:
    first = whole.nodes[0].entries
    assert (first["alive"], first["length"], first["table"]) == ("r0", "r0=3", "r0,0=b0 r0,1=b1")
    assert {e.text for e in whole.edges if e.source == 0} == {"fork(r0, r1)", "append_in_place(r0)", "cancel(r0)"}


def test_with_symmetry_a_node_is_an_orbit() -> None:
    assert len(made("full").nodes) == 23


def test_a_depth_cuts_the_graph_and_says_where_it_is_open() -> None:
    cut = made("none", depth=2)
    assert max(n.depth for n in cut.nodes) == 2
    assert {n.depth for n in cut.nodes if n.open} == {2}
    assert not any(n.end for n in cut.nodes if n.open)
    assert [n.depth for n in made("none", depth=0).nodes] == [0]


def test_a_state_that_breaks_a_rule_leads_on_to_nothing_but_the_rule(wrong: Graph) -> None:
    found = {b.source for b in wrong.breaches}
    assert {b.rule for b in wrong.breaches} == {"exclusive_write"}
    assert len(found) > 1
    assert not found & {e.source for e in wrong.edges}
    assert not found & {n.number for n in wrong.nodes if n.end}


def test_what_no_reader_could_follow_is_refused_with_what_fits() -> None:
    with pytest.raises(Hairball) as refused:
        made("none", most=40)
    said = str(refused.value)
    assert said.startswith("100 states and 296 steps are a hairball; at most 40 are drawn; narrow it: ")
    depth, states = re.findall(r"--depth (\d+) keeps the first (\d+) states", said)[0]
    assert len(made("none", most=40, depth=int(depth)).nodes) == int(states) <= 40
    with pytest.raises(Hairball):
        made("none", most=40, depth=int(depth) + 1)
    assert "--symmetry full" in said
    assert "--set branches=1, --set blocks=3, --set positions=1" in said


def test_networkx_has_every_state_and_step(whole: Graph, wrong: Graph) -> None:
    nx = pytest.importorskip("networkx")
    given = networkx_graph(whole)
    assert (given.number_of_nodes(), given.number_of_edges()) == (100, 296)
    assert set(nx.descendants(given, 0)) | {0} == set(range(100))
    assert given.nodes[0]["s.length"] == "r0=3"
    assert given.graph["symmetry"] == "none"
    bad = networkx_graph(wrong)
    assert len(nx.shortest_path(bad, 0, "violated exclusive_write")) == 4  # two steps, and the rule


def test_graphml_is_read_back_the_same(wrong: Graph) -> None:
    nx = pytest.importorskip("networkx")
    text = drawn(wrong, "graphml")
    back = nx.parse_graphml(text, node_type=str, force_multigraph=True)
    given = networkx_graph(wrong)
    assert {(n, data.get("depth"), data.get("s.table")) for n, data in back.nodes(data=True)} == {
        (str(n), data.get("depth"), data.get("s.table")) for n, data in given.nodes(data=True)
    }
    assert sorted((u, v, d["text"]) for u, v, d in back.edges(data=True)) == sorted(
        (str(u), str(v), d["text"]) for u, v, d in given.edges(data=True)
    )
    ids = re.findall(r'<edge [^>]*id="(\d+)"', text)
    assert len(ids) == len(set(ids)) == len(wrong.edges) + len(wrong.breaches)


def test_dot_has_a_line_for_each_state_and_each_pair(wrong: Graph) -> None:
    lines = drawn(wrong, "dot").splitlines()
    pairs = {(e.source, e.target) for e in wrong.edges} | {(b.source, b.rule) for b in wrong.breaches}
    assert sum(" -> " in line for line in lines) == len(pairs)
    assert sum(bool(re.match(r'  \d+ \[label="', line)) for line in lines) == len(wrong.nodes)
    assert '  "exclusive_write" [label="violated exclusive_write", color=red];' in lines
    one_branch = r'  0 \[label="0\\nalive (r\d)\\nlength \1=3\\ntable \1,0=b\d \1,1=b\d'  # whichever of its orbit
    assert re.match(one_branch, lines[2])


def test_mermaid_has_a_line_for_each_state_and_each_pair(wrong: Graph) -> None:
    lines = drawn(wrong, "mermaid").splitlines()
    assert lines[1] == "flowchart TD"
    pairs = {(e.source, e.target) for e in wrong.edges} | {(b.source, b.rule) for b in wrong.breaches}
    assert sum("-->" in line for line in lines) == len(pairs)
    assert sum(bool(re.match(r'    s\d+(\(\[|\[)"', line)) for line in lines) == len(wrong.nodes)
    ends = ",".join(f"s{n.number}" for n in wrong.nodes if n.end)
    assert f"    class {ends} ended" in lines


def test_the_command_writes_a_file_and_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    settings = ("branches=2", "blocks=4")
    target = tmp_path / "states.dot"
    assert run(Request(MACHINE, "dot", settings, output=target)) == 0
    assert target.read_text().startswith('digraph "tail_machine" {')
    with pytest.raises(Refused, match="hairball"):
        run(Request(MACHINE, "mermaid", settings, symmetry="none"))
    with pytest.raises(Refused, match=r"--to png: known are dot"):
        run(Request(MACHINE, "png", settings))


def test_the_search_and_the_graph_agree(whole: Graph) -> None:
    design = find(MACHINE)
    found = explore(prepare(design, scoped(design, TWO), "none"))
    taken = {name: sum(e.action == name for e in whole.edges) for name in found.actions}
    assert taken == found.actions
