"""Nodes of a tape's graph over REST: values, gradients, explanations, parts of a long tape; nothing changes by it."""

import math

import pytest

from serving import ok, problem


@pytest.fixture
def tape(rest):
    """The path of a tape that is not persistent: w → tanh → round → mul, and a constant."""
    base = rest.path
    ok(rest.http.post(f"{base}/variables", json={"id": "w", "value": [0.5, -1.5, 2.5]}))
    ok(rest.http.post(f"{base}/tensors", json={"id": "x", "value": [1.5, 2.5, 3.5]}))
    ok(rest.http.post(f"{base}/tapes", json={"id": "t"}))
    ops = [
        {"op": "tanh", "inputs": ["w"], "outputs": ["a"], "where": "train.py:1"},
        {"op": "round", "inputs": ["a"], "outputs": ["b"]},
        {"op": "mul", "inputs": ["a", "x"], "outputs": ["c"]},
        {"op": "reduce_sum", "inputs": ["c"], "outputs": ["loss"]},
    ]
    ok(rest.http.post(f"{base}/tapes/t/ops", json={"ops": ops}))
    return f"{base}/tapes/t"


def labels(http, path, **query):
    graph = ok(http.get(f"{path}/graph", params=query)).json()
    return {node["id"]: (node["kind"], node["label"]) for node in graph["nodes"]}


def test_a_node_has_its_spec_ids_inputs_and_the_histogram_of_its_value(rest, tape):
    drawn = labels(rest.http, tape)
    assert drawn["n1"] == ("op", "tanh")
    node = ok(rest.http.get(f"{tape}/nodes/n1?bins=3")).json()
    assert (node["op"], node["names"], node["dtype"], node["shape"]) == ("tanh", ["a"], "float32", [3])
    assert node["where"] == "train.py:1"
    assert [(entry["node"], entry["shape"]) for entry in node["inputs"]] == [("n0", [3])]
    assert node["value"]["maximum"] == pytest.approx(math.tanh(2.5), rel=1e-6)
    assert node["value"]["counts"] == [1, 0, 2]
    watched = ok(rest.http.get(f"{tape}/nodes/w0")).json()
    assert (watched["kind"], watched["names"], watched["value"]["mean"]) == ("variable", ["w"], 0.5)


def test_a_value_without_an_id_is_what_the_tape_keeps(rest, tape):
    ok(rest.http.delete(f"{rest.path}/tensors/a"))
    node = ok(rest.http.get(f"{tape}/nodes/n1")).json()
    assert node["names"] == []
    assert node["value"]["elements"] == 3
    ok(rest.http.delete(f"{rest.path}/tensors/loss"))
    assert ok(rest.http.get(f"{tape}/nodes/n4")).json()["value"] is None


def test_the_gradient_of_a_node_leaves_the_tape_as_it_is(rest, tape):
    before = ok(rest.http.get(tape)).json()
    for _ in range(2):
        [derivative] = ok(rest.http.get(f"{tape}/nodes/n4/gradient")).json()["derivatives"]
        assert (derivative["source"], derivative["name"], derivative["kind"]) == ("w0", "w", "dense")
        assert derivative["value"]["maximum"] == pytest.approx(1.5 * (1 - math.tanh(0.5) ** 2), rel=1e-5)
    [cut] = ok(rest.http.get(f"{tape}/nodes/n2/gradient?sources=w0")).json()["derivatives"]
    assert (cut["kind"], cut["value"], cut["why"]["op"]) == ("none", None, "round")
    assert ok(rest.http.get(tape)).json() == before
    answer = ok(rest.http.post(f"{tape}/gradient", json={"targets": ["loss"], "sources": ["w"]})).json()
    assert answer["derivatives"][0]["value"]["data"][0] == pytest.approx(1.5 * (1 - math.tanh(0.5) ** 2), rel=1e-5)
    problem(rest.http.get(f"{tape}/nodes/n4/gradient"), 409, "tape_consumed")
    assert ok(rest.http.get(f"{tape}/nodes/n2/explain")).json()["explanations"][0]["op"] == "round"


def test_a_node_by_an_op_in_between_is_a_source_too(rest, tape):
    [derivative] = ok(rest.http.get(f"{tape}/nodes/n4/gradient?sources=n1")).json()["derivatives"]
    assert (derivative["value"]["minimum"], derivative["value"]["maximum"]) == (1.5, 3.5)


def test_explanations_name_the_cut(rest, tape):
    answer = ok(rest.http.get(f"{tape}/nodes/n2/explain")).json()
    assert [(entry["source"], entry["name"], entry["op"]) for entry in answer["explanations"]] == [("w0", "w", "round")]


def test_part_of_a_tape_has_the_same_ids(rest, tape):
    assert labels(rest.http, tape, first=2, ops=2) == {
        "n1": ("outside", "tanh"),
        "n2": ("op", "round"),
        "n3": ("op", "mul"),
    }
    assert labels(rest.http, tape, first=0, ops=1) == {"w0": ("variable", "variable"), "n0": ("read", "read")}
    problem(rest.http.get(f"{tape}/graph?first=5"), 422, "invalid_argument")
    problem(rest.http.get(f"{tape}/graph?first=1&targets=loss"), 422, "invalid_request")


def test_groups_of_a_long_tape_are_drawn_by_their_first_and_ops(rest):
    base = rest.path
    ok(rest.http.post(f"{base}/variables", json={"id": "w", "value": 0.5}))
    ok(rest.http.post(f"{base}/tapes", json={"id": "long", "persistent": True}))
    ops = [{"op": "identity", "inputs": ["w"], "outputs": ["x0"]}]
    for i in range(1500):
        ops.append({"op": ("sin", "tanh")[i % 2], "inputs": [f"x{i}"], "outputs": [f"x{i + 1}"]})
    ok(rest.http.post(f"{base}/tapes/long/ops", json={"ops": ops}))
    graph = ok(rest.http.get(f"{base}/tapes/long/graph?nodes=40")).json()
    assert len(graph["nodes"]) <= 40
    group = next(node for node in graph["nodes"] if node["kind"] == "group" and node["first"] > 100)
    part = {"first": group["first"], "ops": group["ops"], "nodes": 200}
    drawn = ok(rest.http.get(f"{base}/tapes/long/graph", params=part)).json()
    calls = [node for node in drawn["nodes"] if node["kind"] == "op"]
    assert [node["first"] for node in calls] == list(range(group["first"], group["first"] + group["ops"]))
    assert [node["id"] for node in drawn["nodes"] if node["kind"] == "outside"] == [f"n{group['first'] - 1}"]
    node = ok(rest.http.get(f"{base}/tapes/long/nodes/{calls[0]['id']}")).json()
    assert node["inputs"][0]["node"] == f"n{group['first'] - 1}"


@pytest.mark.parametrize("node", ["n5", "w1", "w", "x0", "n-1", "n01", "loss"])
def test_an_unknown_node_is_refused(rest, tape, node):
    assert problem(rest.http.get(f"{tape}/nodes/{node}"), 404, "unknown_id")["details"]["id"] == node
    problem(rest.http.get(f"{tape}/nodes/n4/gradient", params={"sources": node}), 404, "unknown_id")


def test_histograms_of_tensors(rest):
    value = {"dtype": "float64", "shape": [5], "data": ["NaN", "Infinity", 0.5, 0.5, 1.5]}
    ok(rest.http.post(f"{rest.path}/tensors", json={"id": "x", "value": value}))
    answer = ok(rest.http.get(f"{rest.path}/tensors/x/histogram?bins=2")).json()
    assert (answer["dtype"], answer["nan"], answer["positive_infinity"], answer["counts"]) == ("float64", 1, 1, [2, 1])
    problem(rest.http.get(f"{rest.path}/tensors/x/histogram?bins=0"), 422, "invalid_request")
    problem(rest.http.get(f"{rest.path}/tensors/nope/histogram"), 404, "unknown_id")
