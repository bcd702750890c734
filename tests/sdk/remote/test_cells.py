"""Lines of a notebook: the cell and its line, as IPython names them. IPython changes a process, so it has its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from teletape.core.program import cells

FOLDER = Path(__file__).resolve().parent
PROGRAM = r"""
import contextlib, io, json, os, sys, tempfile

from IPython.core.compilerop import CachingCompiler
from IPython.core.interactiveshell import InteractiveShell
from loopback import Loopback, session_on

from teletape.core.sessions.current import use


class Compiler(CachingCompiler):
    # As ipykernel's: a cell is a file of a temporary folder, so that debuggers find it.
    def get_code_name(self, raw_code, transformed_code, number):
        return os.path.join(tempfile.gettempdir(), "ipykernel_1", f"{abs(hash(raw_code))}.py")


shell = InteractiveShell.instance(colors="nocolor")
if sys.argv[1] == "kernel":
    shell.compile = Compiler()
printed = []
for number, cell in enumerate(json.load(sys.stdin), 1):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        shell.run_cell(cell, store_history=True)
        if number == 1:
            use(session_on(Loopback()))
    printed.append(out.getvalue())
print(json.dumps(printed))
"""
CELLS = (
    "import teletape as tf",
    "x = tf.Variable(2.0)\n\ndef f(x):\n    return tf.round(x)\n",
    "with tf.GradientTape() as tape:\n    y = f(x) * 2.0\nprint(tape.gradient(y, x))\nprint(tape.explain(y, x))",
    "a = tf.ones([2, 3])\n\na @ a",
    "for _ in range(3):\n    y = y + 1.0\n    float(y)\nprint(tf.session().summary())",
    "positions = tf.cast(9.0 * tf.ones(20), tf.int32)\nz = tf.gather(a, positions)",
    "z.numpy()",
    "def lines(error):\n    from traceback import extract_tb\n    return len(extract_tb(error.__traceback__))",
    "try:\n    f(a @ a)\nexcept Exception as error:\n    print(lines(error))",
)


@pytest.fixture(scope="module", params=["terminal", "kernel"])
def printed(request):
    environment = os.environ | {"PYTHONPATH": str(FOLDER), "IPYTHONDIR": "/nonexistent"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, request.param],
        input=json.dumps(CELLS),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_an_explanation_names_the_cell_and_its_line(printed):
    assert printed[2].startswith("None\n")
    assert "Cell In[2], line 4, in f" in printed[2]


def test_a_shape_error_shows_the_cell_alone(printed):
    assert "Cell In[4], line 3" in printed[3]
    assert "[Op:MatMul]" in printed[3]
    assert "teletape/" not in printed[3]


def test_a_summary_counts_reads_by_cells(printed):
    assert "  3 reads at Cell In[5], line 3" in printed[4]


def test_an_error_at_a_read_names_the_cell_that_recorded_it(printed):
    assert printed[5] == ""
    assert "Cell In[7], line 1" in printed[6]
    assert "op 'gather', recorded at Cell In[6], line 2" in printed[6]


def test_a_traceback_has_the_lines_of_the_cell_alone(printed):
    assert printed[8] == "1\n"


def test_without_ipython_there_are_no_cells(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert cells.cell_of("/tmp/ipykernel_1/2.py") is None


def test_ipython_7_numbers_the_files_of_cells(monkeypatch):
    class Shell:
        compile = object()

    module = type("IPython", (), {"get_ipython": Shell})
    monkeypatch.setitem(sys.modules, "IPython", module)
    assert cells.cell_of("<ipython-input-12-0a1b2c>") == "Cell In[12]"
    assert cells.cell_of("train.py") is None
