"""The engine runs with NumPy and SciPy: everything else that is installed is hidden from it in a process of its own."""

import subprocess
import sys
from pathlib import Path

from teletape_engine.session import session

PROGRAM = '''
import sys

import numpy as np

ALLOWED = {"numpy", "scipy", "teletape_engine", *sys.stdlib_module_names}


class Hidden:
    """Finds nothing outside NumPy, SciPy and the standard library, and notes who asked."""

    asked = set()

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in ALLOWED:
            self.asked.add(name.partition(".")[0])
            raise ModuleNotFoundError(f"hidden: {name}", name=name)


for name in list(sys.modules):
    if name.partition(".")[0] not in ALLOWED | {"__main__"}:
        del sys.modules[name]
sys.meta_path.insert(0, Hidden())

from teletape_engine.commands import Batch, Call, Fetch, Gradient, Constant, TapeOpen, TapeWatch
from teletape_engine.session.session import Session

todo = (
    Constant("x", np.array([1.0, 2.0], np.float32)),
    TapeOpen("t"),
    TapeWatch("t", ("x",)),
    Call("tanh", ("x",), ("y",)),
    Gradient("t", ("y",), ("x",), ("g",)),
    Fetch("g"),
)
answer = Session().execute(Batch(todo))
assert answer.failure is None, answer.failure
assert np.allclose(answer.results[-1].array, 1 - np.tanh([1.0, 2.0]) ** 2, rtol=1e-6)

put, cast = Constant("x", np.ones(2, np.float32)), Call("cast", ("x",), ("y",), {"dtype": "bfloat16"})
wrong = Session().execute(Batch((put, cast)))
print(wrong.failure.code)
print(*sorted(Hidden.asked))
'''


def test_a_gradient_with_numpy_and_scipy_alone():
    root = Path(session.__file__).parents[2]
    command = [sys.executable, "-P", "-W", "error", "-c", PROGRAM]
    done = subprocess.run(
        command, env={"PYTHONPATH": str(root)}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    code, question = done.stdout.splitlines()
    assert code == "bad_attribute"  # bfloat16 does not exist without ml_dtypes
    assert question == "ml_dtypes org"  # org.python is what the standard library's copy looks for
