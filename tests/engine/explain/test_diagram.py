"""A tape as a diagram: nodes, edges, bytes, names, folds and cuts; and its text in DOT."""

import json

import numpy as np
import pytest
from driving import failing, run, watched

from teletape_engine.commands import Call, Constant, Gradient, MakeVariable, TapeGraph, TapeOpen, TapeWatch
from teletape_engine.diagram.dot import bytes_text, dot, quoted
from teletape_engine.recording.values import Literal
from teletape_engine.session.session import Session

BIG = np.zeros(1000, np.float32)


def graph(session, *targets, sources=(), nodes=None, tape="t"):
    (result,) = run(session, TapeGraph(tape, targets, sources, nodes))
    json.dumps(result.facts, allow_nan=False)
    return result.facts


def node(facts, label):
    (results,) = [item for item in facts["nodes"] if label in (item["label"], item["name"])]
    return results


def edges(facts):
    by = {node["id"]: node["name"] or node["label"] for node in facts["nodes"]}
    return {(by[edge["from"]], by[edge["to"]]): edge for edge in facts["edges"]}


def test_a_tape_shows_what_it_watched_what_it_called_and_what_each_call_keeps():
    session = Session()
    run(session, MakeVariable("w", BIG, name="weights"))
    run(
        session,
        Constant("x", BIG + 1),
        TapeOpen("t", True),
        TapeWatch("t", ("x",)),
        Call("mul", ("w", "x"), ("p",), where="train.py:3"),
        Call("tanh", ("p",), ("y",)),
    )
    facts = graph(session)
    assert [item["kind"] for item in facts["nodes"]] == ["variable", "tensor", "read", "op", "op"]
    assert node(facts, "weights") | {"shape": [1000], "dtype": "float32", "ops": 0} == node(facts, "weights")
    assert node(facts, "p") | {"label": "mul", "keeps": ["a", "b"], "bytes": 8000, "where": "train.py:3"} == node(
        facts, "p"
    )
    assert node(facts, "y") | {"keeps": ["y"], "bytes": 4000, "first": 2, "ops": 1} == node(facts, "y")
    assert edges(facts).keys() == {("weights", "read"), ("read", "p"), ("x", "p"), ("p", "y")}
    assert (facts["ops"], facts["bytes"], facts["folded"], facts["consumed"]) == (3, 12_000, None, False)


def test_a_buffer_counts_where_it_is_kept_first():
    session = Session()
    run(session, *watched(Call("tanh", ("x",), ("a",)), Call("mul", ("a", "a"), ("b",)), Call("tanh", ("b",), ("c",))))
    facts = graph(session)
    assert [item["bytes"] for item in facts["nodes"][1:]] == [12, 0, 12]
    assert facts["bytes"] == 24
    assert node(facts, "b")["keeps"] == ["a", "b"]
    assert edges(facts)["a", "b"]["uses"] == 2


def test_the_path_of_a_gradient_is_marked():
    session = Session()
    run(session, *watched(Call("tanh", ("x",), ("a",)), Call("neg", ("x",), ("aside",)), Call("exp", ("a",), ("y",))))
    facts = graph(session, "y", sources=("x",))
    assert node(facts, "x")["marks"] == ["source", "path"]
    assert node(facts, "y")["marks"] == ["target", "path"]
    assert node(facts, "aside")["marks"] == []
    assert {pair for pair, item in edges(facts).items() if item["path"]} == {("x", "a"), ("a", "y")}
    assert facts["explanations"] == []


def test_the_cut_on_the_tape_that_makes_a_gradient_none_is_marked_as_explain_names_it():
    session = Session()
    run(session, *watched(Call("round", ("x",), ("a",), where="cut.py:1"), Call("exp", ("a",), ("y",))))
    facts = graph(session, "y", sources=("x",))
    (explanation,) = facts["explanations"]
    assert explanation["code"] == "non_differentiable_op"
    cut = node(facts, "a")
    assert (cut["id"], cut["marks"], cut["where"]) == (explanation["drawn"], ["cut"], "cut.py:1")
    assert cut["why"] == explanation["message"]
    assert not edges(facts)["x", "a"]["carries"]
    assert edges(facts)["a", "y"]["carries"]


def test_a_cut_that_no_tape_recorded_stands_between_source_and_target():
    session = Session()
    todo = (
        Call("exp", ("x",), ("e",)),
        Call("argmax", ("e",), ("i",)),
        Call("cast", ("i",), ("y",), {"dtype": "float32"}),
    )
    run(session, *watched(*todo))
    facts = graph(session, "y", sources=("x",))
    (explanation,) = facts["explanations"]
    cut = node(facts, "argmax")
    assert (cut["kind"], cut["id"], cut["marks"]) == ("cut", explanation["drawn"], ["cut"])
    assert edges(facts).keys() == {("x", "e"), ("e", "argmax"), ("argmax", "y")}
    assert node(facts, "y")["kind"] == "outside"


def test_a_consumed_tape_is_still_drawn_and_keeps_nothing():
    session = Session()
    run(
        session,
        *watched(Call("tanh", ("x",), ("a",)), Call("exp", ("a",), ("y",))),
        Gradient("t", ("y",), ("x",), ("g",)),
    )
    facts = graph(session, "y", sources=("x",))
    assert [item["label"] for item in facts["nodes"]] == ["tensor", "tanh", "exp"]
    assert (facts["consumed"], facts["bytes"]) == (True, 0)
    assert all(item["keeps"] == [] for item in facts["nodes"])
    assert node(facts, "a")["marks"] == ["path"]


def test_a_long_tape_is_folded_by_what_repeats_and_says_so():
    session = Session()
    todo = [Constant("x0", BIG), TapeOpen("t", True), TapeWatch("t", ("x0",))]
    for i in range(500):
        todo += [Call("tanh", (f"x{i}",), (f"a{i}",)), Call("mul", (f"a{i}", Literal(0.5)), (f"x{i + 1}",))]
    run(session, *todo)
    whole, facts = graph(session), graph(session, "x500", sources=("x0",), nodes=100)
    assert len(whole["nodes"]) == 1001
    assert whole["folded"] is None
    assert len(facts["nodes"]) <= 100
    assert facts["folded"].startswith("1,000 ops are drawn as ")
    groups = facts["nodes"][1:]
    assert sum(group["ops"] for group in groups) == 1000
    assert all(group["kind"] == "group" and "times the same 2" in group["label"] for group in groups)
    assert sum(group["bytes"] for group in groups) == whole["bytes"] == facts["bytes"]
    assert all("path" in group["marks"] for group in groups)
    assert len(facts["edges"]) == len(groups)
    text = dot(facts)
    assert facts["folded"] in text


def test_many_watched_tensors_share_a_node_and_asked_ones_do_not():
    session = Session()
    names = [f"x{i}" for i in range(100)]
    run(session, *[Constant(name, BIG) for name in names], TapeOpen("t", True), TapeWatch("t", tuple(names)))
    run(session, Call("add_n", tuple(names), ("y",)))
    facts = graph(session, "y", sources=("x99",), nodes=20)
    assert len(facts["nodes"]) <= 20
    assert node(facts, "x99")["marks"] == ["source", "path"]
    (rest,) = [item for item in facts["nodes"] if item["kind"] == "watched"]
    assert rest["label"] == "96 more watched"
    assert facts["folded"] == "96 watched values share a node"


def test_an_unknown_tape_or_target_is_reported():
    session = Session()
    run(session, *watched())
    assert failing(session, TapeGraph("nope")).code == "unknown_id"
    assert failing(session, TapeGraph("t", ("nope",), ("x",))).code == "unknown_id"
    assert failing(session, TapeGraph("x")).message == "the id 'x' is a tensor, expected a tape"


NASTY = [
    'w"];evil [label="',
    "back\\slash\\",
    "two\nlines\r\x00",
    "\\N \\G \\l",
    "&lt;script&gt;<script>alert(1)</script>",
    "\u202egnp.exe\ud800",
    "]]> -->",
    "x" * 500,
    "",
]


@pytest.mark.parametrize("name", NASTY)
def test_a_name_in_dot_is_one_string_whatever_it_holds(name):
    session = Session()
    run(
        session,
        MakeVariable("w", BIG, name=name or None),
        TapeOpen("t"),
        Call("exp", ("w",), ("y",), where=name or None),
    )
    text = dot(graph(session))
    assert text.encode()  # no lone surrogate
    strings = 0
    for line in text.splitlines():  # outside of strings only our own words: quotes pair up on every line
        at, inside = 0, False
        while at < len(line):
            if line[at] == "\\" and inside:
                at += 1
            elif line[at] == '"':
                inside, strings = not inside, strings + 1
            at += 1
        assert not inside, line
        assert not any(ord(item) < 32 for item in line)
    assert strings > 10
    assert "evil" not in text.replace(quoted('w"];evil [label="')[1:-1], "")


def test_an_edge_over_many_ranks_is_drawn_as_a_label():
    session = Session()
    todo = [Constant("x", BIG), TapeOpen("t", True), TapeWatch("t", ("x",)), Call("tanh", ("x",), ("y0",))]
    todo += [Call("mul", (f"y{i}", "x"), (f"y{i + 1}",)) for i in range(100)]
    run(session, *todo)
    facts = graph(session)
    text = dot(facts)
    assert text.count('"from x"') > 50
    assert text.count("w0 -> ") < 40


def test_bytes_are_reported_in_round_numbers():
    assert [bytes_text(n) for n in (0, 1, 1023, 1536, 5 << 20, 300 << 20, 7 << 40)] == [
        "0 bytes",
        "1 bytes",
        "1,023 bytes",
        "1.5 KiB",
        "5.0 MiB",
        "300 MiB",
        "7,168 GiB",
    ]
