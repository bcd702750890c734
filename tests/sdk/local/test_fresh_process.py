"""What a process can do that has used no public name before."""

import pickle
import subprocess
import sys

import pytest

import teletape as tf

PROGRAM = """
import teletape as tf

@tf.function
def count(x):
    return tf.while_loop(lambda i: i < 3, lambda i: i + 1, [x])

print(int(count(tf.constant(0))[0]))
"""


def test_a_fresh_process_runs_a_loop_in_a_function() -> None:
    result = subprocess.run([sys.executable, "-P", "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "3"


USE = """
import pickle, sys
x = pickle.loads(bytes.fromhex(sys.argv[1]))
assert "teletape" not in sys.modules or "constant" not in vars(sys.modules["teletape"])
print(eval(sys.argv[2]).numpy().tolist())
"""


@pytest.mark.parametrize("kind", [tf.constant, tf.Variable])
@pytest.mark.parametrize(
    ("expression", "expected"),
    [("x + 1.0", [2.0, 3.0]), ("3.0 - x", [2.0, 1.0]), ("x == [1.0, 5.0]", [True, False]), ("-x[1:]", [-2.0])],
)
def test_operators_are_those_of_tensors_before_any_public_name_is_used(
    kind: object, expression: str, expected: object
) -> None:
    tensor = pickle.dumps(kind([1.0, 2.0])).hex()  # type: ignore[operator]  # a function or a class
    command = [sys.executable, "-P", "-c", USE, tensor, expression]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.stdout.strip(), result.stderr) == (str(expected), "")


RAGGED = """
import pickle, sys
x = pickle.loads(bytes.fromhex(sys.argv[1]))
print((1.0 - x).to_list(), x[0].numpy().tolist(), x.row_lengths().numpy().tolist())
"""


def test_a_ragged_tensor_has_its_methods_too() -> None:
    ragged = pickle.dumps(tf.ragged.constant([[1.0, 2.0], [3.0]])).hex()
    result = subprocess.run([sys.executable, "-P", "-c", RAGGED, ragged], capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr) == ("[[0.0, -1.0], [-2.0]] [1.0, 2.0] [2, 1]\n", "")


LOADED = """
from teletape.core.tensors.tensor import TensorLike
before = dict(vars(TensorLike))
from teletape.core.calls.operators import give_operators
give_operators()
print([name for name, method in vars(TensorLike).items() if before.get(name) is None])
print([name for name, method in vars(TensorLike).items() if "_first_use" in getattr(method, "__qualname__", "")])
"""


def test_each_operator_has_a_first_use_and_no_other_method_has() -> None:
    result = subprocess.run([sys.executable, "-P", "-c", LOADED], capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr) == ("[]\n[]\n", "")


def test_the_samples_of_ops_are_drawn_when_a_test_needs_them() -> None:
    program = "import sys, teletape_engine.ops; print('numpy.random' in sys.modules)"
    result = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr) == ("False\n", "")
