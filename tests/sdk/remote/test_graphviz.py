"""Graphviz in a process of its own: pictures, time limits, and a machine without it."""

import subprocess
import sys
import xml.etree.ElementTree as xml

import pytest

from teletape_engine.diagram import graphviz
from teletape_engine.diagram.graphviz import LayoutFailedError, NoLayoutError

SMALL = 'digraph { a [label="x & <y>"]; a -> b; }'


def test_a_text_becomes_a_picture_that_says_what_it_said():
    picture = xml.fromstring(graphviz.svg('digraph { a [label="&amp; <b> \\" \\\\"]; a -> b; }').encode())
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    assert '& <b> " \\' in [item.text for item in picture.iter("{http://www.w3.org/2000/svg}text")]


def test_a_layout_that_takes_too_long_is_given_up():
    nodes = range(400)
    slow = "digraph {" + "".join(f"n{i} -> n{(i * i + 7 * j) % 400};" for i in nodes for j in range(8)) + "}"
    with pytest.raises(LayoutFailedError, match=r"longer than 0\.5 s and was stopped: ask for fewer nodes, or for DOT"):
        graphviz.svg(slow, seconds=0.5)


def test_a_text_that_is_no_dot_is_refused():
    with pytest.raises(LayoutFailedError, match="Graphviz failed"):
        graphviz.svg("digraph {")


def test_without_graphviz_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(graphviz.shutil, "which", lambda name: None)
    monkeypatch.setattr(graphviz.importlib.util, "find_spec", lambda name: None)
    assert not graphviz.available()
    with pytest.raises(
        NoLayoutError, match=r"pip install 'teletape\[graph\]', or apt-get install graphviz; JSON and DOT"
    ):
        graphviz.svg(SMALL)


def test_an_installed_dot_is_preferred(monkeypatch, tmp_path):
    program = tmp_path / "dot"
    program.write_text(f"#!{sys.executable}\nimport sys\nprint('drawn by', sys.argv[1:], len(sys.stdin.read()))\n")
    program.chmod(0o755)
    monkeypatch.setattr(graphviz.shutil, "which", lambda name: str(program))
    assert graphviz.svg(SMALL) == f"drawn by ['-Tsvg'] {len(SMALL)}\n"


def test_the_child_has_its_limits(monkeypatch):
    seen = {}

    def run(command, **how):
        seen["command"], seen["how"] = command, how
        return subprocess.CompletedProcess(command, 0, b"<svg/>", b"")

    monkeypatch.setattr(graphviz.subprocess, "run", run)
    assert graphviz.svg(SMALL, seconds=3) == "<svg/>"
    assert seen["how"]["timeout"] == 3
    assert seen["command"][1:3] == ["-I", "-c"]
    assert seen["command"][4:6] == ["4", str(2 << 30)]
