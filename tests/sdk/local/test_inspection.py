"""`tape.graph()` and `tape.memory()`: the same inside this process and through a server, also in a notebook."""

import xml.etree.ElementTree as xml

import numpy as np
import pytest

import teletape as tf
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape_engine.diagram import graphviz
from teletape_engine.errors import ReleasedIdError


def net():
    w = tf.Variable(np.ones((3, 100), np.float32), name="weights")
    x = tf.constant(np.ones((1, 3), np.float32))
    tape = tf.GradientTape(persistent=True)
    with tape:
        hidden = tf.tanh(x @ w)
        loss = tf.reduce_sum(hidden * hidden)
    return w, x, tape, hidden, loss


def shown(graph):
    return [(node["label"], node["name"], node["bytes"], node["keeps"]) for node in graph.json["nodes"]]


def test_a_tape_is_drawn_with_its_variables_lines_and_bytes(connected):
    _, _, tape, _, _ = net()
    graph = tape.graph()
    assert shown(graph) == [
        ("variable", "weights:0", None, []),
        ("read", None, 0, []),
        ("matmul", None, 12, ["a"]),
        ("tanh", None, 400, ["y"]),
        ("mul", None, 0, ["a", "b"]),
        ("reduce_sum", None, 0, []),
    ]
    assert graph.json["bytes"] == 412
    wheres = [node["where"] for node in graph.json["nodes"][2:]]
    assert all(where is not None and "test_inspection.py" in where and where.endswith("in net") for where in wheres)
    assert repr(graph) == "<TapeGraph: 5 ops, 412 bytes kept>"
    texts = [item.text for item in xml.fromstring(graph.svg.encode()).iter("{http://www.w3.org/2000/svg}text")]
    assert "weights:0" in texts
    assert "float32 [1, 100]" in texts


def test_the_cut_is_marked_with_the_callers_line(connected):
    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.round(w))
    graph = tape.graph(y, w)
    (explanation,) = graph.json["explanations"]
    (cut,) = [node for node in graph.json["nodes"] if node["id"] == explanation["drawn"]]
    assert (cut["label"], cut["marks"]) == ("round", ["cut"])
    assert "in test_the_cut_is_marked" in cut["where"]
    assert "op 'round' is declared non-differentiable" in repr(graph)
    assert tape.gradient(y, w) is None
    assert tape.graph(y, w).json["explanations"][0]["code"] == explanation["code"], "drawn after the answer too"
    assert tape.graph(y, w).json["bytes"] == 0


def test_a_notebook_shows_the_picture_and_text_without_graphviz(connected, monkeypatch):
    _, _, tape, _, _ = net()
    bundle = tape._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "image/svg+xml"}
    assert "<svg" in bundle["image/svg+xml"]
    assert tf.GradientTape()._repr_mimebundle_().keys() == {"text/plain"}
    monkeypatch.setattr(graphviz, "available", lambda: False)
    bundle = tape._repr_mimebundle_()
    if connected.local:
        assert "pip install 'teletape[graph]'" in bundle["text/plain"]
        assert "image/svg+xml" not in bundle
    else:
        assert "<svg" in bundle["image/svg+xml"], "the server draws where the client cannot"


def test_over_http_a_picture_of_a_tape_that_is_gone_says_so(server_url, monkeypatch):
    with tf.connect(server_url):
        _, _, tape, _, _ = net()
        graph = tape.graph()
        del tape
        tf.sync()
        monkeypatch.setattr(graphviz, "available", lambda: False)
        with pytest.raises(ReleasedIdError, match="was released"):
            _ = graph.svg
        assert graph.dot.startswith("digraph"), "what was had already stays"
    use(LocalSession())


def test_a_tape_reports_its_bytes_and_what_its_end_would_free(connected):
    w, x, tape, hidden, _ = net()
    assert tape.memory() == (5, 412, 0), "the program holds x and hidden itself"
    del hidden
    assert tape.memory() == (5, 412, 400)
    del x
    assert tape.memory() == (5, 412, 412)
    del w
    assert tape.memory() == (5, 412, 412 + 1200), "the tape alone keeps the variable"
    assert str(tape.memory()) == "5 ops keep 412 bytes; ending the tape frees 1.6 KiB"


def test_an_array_that_another_tape_keeps_is_not_freed(connected):
    x = tf.Variable(np.ones(1000, np.float32))
    with tf.GradientTape(persistent=True) as outer, tf.GradientTape(persistent=True) as inner:
        y = tf.exp(x)
    del y
    assert inner.memory()[1:] == (4000, 0)
    assert outer.memory()[1:] == (4000, 0)
    del outer
    assert inner.memory()[1:] == (4000, 4000)


def test_a_tape_that_has_answered_keeps_nothing(connected):
    x = tf.Variable(np.ones(1000, np.float32))
    with tf.GradientTape() as tape:
        y = tf.exp(x)
    tape.gradient(y, x)
    assert tape.memory() == (2, 0, 0)


def test_a_tape_that_was_never_entered_has_nothing_to_show(connected):
    for ask in (tf.GradientTape().graph, tf.GradientTape().memory):
        with pytest.raises(RuntimeError, match="this tape was never entered"):
            ask()


def test_a_target_without_sources_is_refused(connected):
    x = tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    with pytest.raises(TypeError, match="give both, or neither"):
        tape.graph(y)
    with pytest.raises(TypeError, match="a source must be a Tensor"):
        tape.graph(y, 3.0)
