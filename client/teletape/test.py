"""`tf.test`: a thin TestCase for programs that bring their tests, and questions about the build. Imported when used."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import unittest
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from teletape.derivatives.tape import GradientTape
from teletape.errors import OpError
from teletape.ops.dispatch import convert_to_tensor
from teletape.tensors import nest
from teletape.tensors.tensor import TensorLike

__all__ = [
    "TestCase",
    "compute_gradient",
    "gpu_device_name",
    "is_built_with_cuda",
    "is_built_with_gpu_support",
    "is_built_with_rocm",
    "is_built_with_xla",
    "is_gpu_available",
    "main",
]


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Whether this program sees a GPU: no, its one device is its session's, which may compute on a server's GPU."""
    return False


def gpu_device_name() -> str:
    """Returns the name of a GPU; "": this program sees none."""
    return ""


def is_built_with_cuda() -> bool:
    """Whether the SDK calls CUDA: no, the host of a session does."""
    return False


def is_built_with_gpu_support() -> bool:
    """Whether the SDK computes on a GPU: no, the host of a session does."""
    return False


def is_built_with_rocm() -> bool:
    """Whether the SDK calls ROCm: no."""
    return False


def is_built_with_xla() -> bool:
    """Whether there is XLA: no."""
    return False


def main(argv: list[str] | None = None) -> NoReturn:
    """Runs the tests of the module `__main__`, as `unittest.main`, and ends the program."""
    unittest.main(argv=argv)
    raise SystemExit


def compute_gradient(f: Callable[..., Any], x: Any, delta: float | None = None) -> tuple[Any, Any]:
    """Computes the Jacobians of `f` by the tape and by central differences.

    Args:
        f: Takes tensors, and returns one tensor.
        x: A list of the tensors.
        delta: The step of the differences; None: 1/1024.

    Returns:
        Two tuples, the tape's and the differences': for each tensor a matrix with a row for each element of the
        result.

    Raises:
        ValueError: `x` is no list.
    """
    if not isinstance(x, list | tuple):
        raise ValueError("`x` must be a list or tuple of tensors")
    tensors = [convert_to_tensor(value) for value in x]
    with GradientTape() as tape:
        for tensor in tensors:
            tape.watch(tensor)
        y = convert_to_tensor(f(*tensors))
    size = y.numpy().size
    jacobians = tape.jacobian(y, tensors, unconnected_gradients="zero")
    by_tape = tuple(
        np.asarray(jacobian).reshape(size, tensor.numpy().size)
        for jacobian, tensor in zip(jacobians, tensors, strict=True)
    )
    step = 1 / 1024 if delta is None else delta
    return by_tape, tuple(_differences(f, tensors, place, step, size) for place in range(len(tensors)))


def _differences(f: Callable[..., Any], tensors: list[Any], place: int, step: float, size: int) -> Any:
    values = [np.asarray(tensor) for tensor in tensors]
    columns = np.zeros((size, values[place].size), values[place].dtype)
    for element in range(values[place].size):
        ends = []
        for sign in (1, -1):
            moved = values[place].copy()
            moved.reshape(-1)[element] += sign * step
            arguments = [convert_to_tensor(moved if i == place else value) for i, value in enumerate(values)]
            ends.append(np.asarray(f(*arguments)).reshape(-1))
        columns[:, element] = (ends[0] - ends[1]) / (2 * step)
    return columns


class TestCase(unittest.TestCase):
    """`unittest.TestCase` with assertions on tensors, arrays and nested structures of them."""

    __test__ = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__test__ = True

    def get_temp_dir(self) -> str:
        """Returns a folder that is removed after the test."""
        if not hasattr(self, "_folder"):
            self._folder = tempfile.mkdtemp()
            self.addCleanup(shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder

    def evaluate(self, tensors: Any) -> Any:
        """Returns the values of a structure of tensors as arrays."""
        return nest.map_structure(lambda leaf: leaf.numpy() if isinstance(leaf, TensorLike) else leaf, tensors)

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Fails unless two values have the same shape and elements."""
        left, right = np.asarray(self.evaluate(a)), np.asarray(self.evaluate(b))
        self.assertEqual(left.shape, right.shape, msg)
        np.testing.assert_array_equal(left, right, err_msg=msg or "")

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Fails if two values have the same shape and elements."""
        with self.assertRaises(AssertionError, msg=msg):
            self.assertAllEqual(a, b)

    def assertAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:
        """Fails unless two structures have elements that differ by at most `atol + rtol * |b|`."""
        if isinstance(a, dict):
            self.assertEqual(sorted(a), sorted(b), msg)
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, msg)
            return
        left, right = self.evaluate(a), self.evaluate(b)
        if isinstance(left, list | tuple) and len({np.shape(value) for value in left}) > 1:
            self.assertEqual(len(left), len(right), msg)
            for first, second in zip(left, right, strict=True):
                self.assertAllClose(first, second, rtol, atol, msg)
            return
        self.assertEqual(np.shape(left), np.shape(right), msg)
        np.testing.assert_allclose(left, right, rtol=rtol, atol=atol, err_msg=msg or "")

    def assertAllCloseAccordingToType(
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: str | None = None,
    ) -> None:
        """As `assertAllClose`, with the tolerances of the less precise of the two dtypes."""
        names = {np.asarray(self.evaluate(value)).dtype.name for value in (a, b)}
        for name, relative, absolute in (
            ("float32", float_rtol, float_atol),
            ("complex64", float_rtol, float_atol),
            ("float16", half_rtol, half_atol),
            ("bfloat16", bfloat16_rtol, bfloat16_atol),
        ):
            if name in names:
                rtol, atol = max(rtol, relative), max(atol, absolute)
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertNotAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:
        """Fails if two structures are close; see `assertAllClose`."""
        with self.assertRaises(AssertionError, msg=msg):
            self.assertAllClose(a, b, rtol, atol)

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        """Fails unless every element is greater."""
        self.assertTrue(bool(np.all(np.asarray(self.evaluate(a)) > comparison_target)))

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """Fails unless every element is less."""
        self.assertTrue(bool(np.all(np.asarray(self.evaluate(a)) < comparison_target)))

    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: str | None = None) -> None:
        """Fails unless two values have the same shape."""
        self.assertEqual(tuple(np.shape(input_a)), tuple(np.shape(input_b)), msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """Fails unless a value has a dtype."""
        self.assertEqual(np.asarray(self.evaluate(target)).dtype, np.dtype(expected_dtype))

    def assertNear(self, f1: float, f2: float, err: float, msg: str | None = None) -> None:
        """Fails unless two numbers differ by at most `err`."""
        self.assertLessEqual(abs(f1 - f2), err, msg)

    @contextlib.contextmanager
    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Iterator[None]:
        """A context manager that fails unless an op raises an error whose text matches."""
        with self.assertRaisesRegex(OpError, expected_err_re_or_predicate):
            yield
