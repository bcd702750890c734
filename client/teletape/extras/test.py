"""`tf.test`: a TestCase for programs' tests, and questions about the build. Imported when first used.

Long because TensorFlow's TestCase has this many assertions, its own and absl's.
"""

from __future__ import annotations

import contextlib
import functools
import re
import shutil
import tempfile
import unittest
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.derivatives.tape import GradientTape
from teletape.core.errors import InvalidArgumentError, OpError
from teletape.core.tensors import nest
from teletape.core.tensors.tensor import TensorLike


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Returns False: a program sees one device, its session's, which may compute on a server's GPU."""
    return False


def gpu_device_name() -> str:
    """Returns the name of a GPU; "": this program sees none."""
    return ""


def is_built_with_cuda() -> bool:
    """Returns False: the host of a session calls CUDA, not the SDK."""
    return False


def is_built_with_gpu_support() -> bool:
    """Returns False: the host of a session computes on a GPU, not the SDK."""
    return False


def is_built_with_rocm() -> bool:
    """Returns False: nothing calls ROCm."""
    return False


def is_built_with_xla() -> bool:
    """Returns False: there is no XLA."""
    return False


def is_cpu_target_available(target: str) -> bool:
    """Returns False: there is no compiler for a processor's architecture."""
    return False


def disable_with_predicate(pred: Callable[[], bool], skip_message: str) -> Callable[[Any], Any]:
    """Decorates a test that is skipped, with this message, if `pred()` is true when it runs."""

    def decorator(function: Any) -> Any:
        @functools.wraps(function)
        def test(self: unittest.TestCase, *args: Any, **kwargs: Any) -> Any:
            if pred():
                self.skipTest(skip_message)
            return function(self, *args, **kwargs)

        return test

    return decorator


def with_eager_op_as_function(cls: Any = None, only_as_function: bool = False) -> Any:
    """Decorates a class of tests, without effect: ops do not run as functions."""
    return cls if cls is not None else lambda decorated: decorated


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
        if np.ndim(rtol) or np.ndim(atol):  # NumPy's function writes them into its message as numbers
            close = np.isclose(left, right, rtol=rtol, atol=atol, equal_nan=True)
            self.assertTrue(close.all(), msg or f"{left!r} and {right!r} differ by more than {atol!r} + {rtol!r} * |b|")
            return
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
        """Like `assertAllClose`, with the tolerances of the less precise of the two dtypes."""
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
        self.assertGreater(np.min(self._array(a)), comparison_target)

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        """Fails if an element is less."""
        self.assertGreaterEqual(np.min(self._array(a)), comparison_target)

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """Fails unless every element is less."""
        self.assertLess(np.max(self._array(a)), comparison_target)

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        """Fails if an element is greater."""
        self.assertLessEqual(np.max(self._array(a)), comparison_target)

    def assertAllInRange(
        self,
        target: Any,
        lower_bound: Any,
        upper_bound: Any,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """Fails if an element is outside the bounds or at an open one, or the dtype is not of real numbers."""
        array = self._array(target)
        if not (np.issubdtype(array.dtype, np.floating) or np.issubdtype(array.dtype, np.integer)):
            self.fail(
                f"The value of {target} does not have an ordered numeric type, instead it has type: {array.dtype}"
            )
        low = array <= lower_bound if open_lower_bound else array < lower_bound
        high = array >= upper_bound if open_upper_bound else array > upper_bound
        outside = array[low | high | np.isnan(array)]
        interval = f"{'(' if open_lower_bound else '['}{lower_bound}, {upper_bound}{')' if open_upper_bound else ']'}"
        self.assertEqual(outside.size, 0, f"{outside} not in {interval}")

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        """Fails if an element is not in a set."""
        outside = [element for element in self._array(target).reshape(-1) if element not in expected_set]
        self.assertEqual(outside, [], f"not in {expected_set}")

    def _array(self, a: Any) -> Any:
        return np.asarray(self.evaluate(a))

    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: str | None = None) -> None:
        """Fails unless two values have the same shape."""
        self.assertEqual(tuple(np.shape(input_a)), tuple(np.shape(input_b)), msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """Fails unless a value has a dtype."""
        self.assertEqual(np.asarray(self.evaluate(target)).dtype, np.dtype(expected_dtype))

    def assertNear(self, f1: float, f2: float, err: float, msg: str | None = None) -> None:
        """Fails unless two numbers differ by at most `err`."""
        self.assertLessEqual(abs(f1 - f2), err, msg)

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: str | None = None) -> None:
        """Fails unless two sequences of numbers have one length and differ by at most `err`."""
        self.assertLen(farray1, len(farray2), msg)
        for first, second in zip(farray1, farray2, strict=True):
            self.assertNear(float(first), float(second), err, msg)

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: str | None = None) -> None:
        """Fails unless the norm of the difference of two arrays is less than `err`."""
        self.assertLess(np.linalg.norm(self._array(ndarray1) - self._array(ndarray2)), err, msg)

    def assertDeviceEqual(self, device1: Any, device2: Any, msg: str | None = None) -> None:
        """Fails unless two devices have the same name."""
        self.assertEqual(str(device1), str(device2), msg)

    def evaluate_if_both_tensors(self, a: Any, b: Any) -> tuple[Any, Any]:
        """Returns the values of two tensors as arrays, and any other values unchanged."""
        both = isinstance(a, TensorLike) and isinstance(b, TensorLike)
        return (self.evaluate(a), self.evaluate(b)) if both else (a, b)

    # --------------------------------------------------------------------------------------------------- collections
    def assertEmpty(self, container: Any, msg: str | None = None) -> None:
        """Fails if a container has elements."""
        self.assertEqual(len(container), 0, msg)

    def assertNotEmpty(self, container: Any, msg: str | None = None) -> None:
        """Fails if a container has no elements."""
        self.assertGreater(len(container), 0, msg)

    def assertLen(self, container: Any, expected_len: int, msg: str | None = None) -> None:
        """Fails unless a container has `expected_len` elements."""
        self.assertEqual(len(container), expected_len, msg)

    def assertBetween(self, value: Any, minv: Any, maxv: Any, msg: str | None = None) -> None:
        """Fails if a number is outside the bounds."""
        self.assertTrue(minv <= value <= maxv, msg or f"{value!r} unexpectedly not between {minv!r} and {maxv!r}")

    def assertSameElements(self, expected_seq: Any, actual_seq: Any, msg: str | None = None) -> None:
        """Fails unless two containers have the same elements, without regard to how often."""
        self.assertContainsSubset(expected_seq, actual_seq, msg)
        self.assertContainsSubset(actual_seq, expected_seq, msg)

    def assertItemsEqual(self, first: Any, second: Any, msg: str | None = None) -> None:
        """Fails unless two containers have the same elements equally often."""
        self.assertCountEqual(first, second, msg)

    def assertContainsSubset(self, expected_subset: Any, actual_set: Any, msg: str | None = None) -> None:
        """Fails if an element of the first container is not in the second."""
        missing = [element for element in expected_subset if element not in actual_set]
        self.assertEqual(missing, [], msg)

    def assertNoCommonElements(self, expected_seq: Any, actual_seq: Any, msg: str | None = None) -> None:
        """Fails if two containers have an element in common."""
        common = [element for element in expected_seq if element in actual_seq]
        self.assertEqual(common, [], msg)

    def assertSequenceAlmostEqual(
        self,
        expected_seq: Any,
        actual_seq: Any,
        places: int | None = None,
        msg: str | None = None,
        delta: float | None = None,
    ) -> None:
        """Fails unless two sequences have one length and numbers that are almost equal."""
        self.assertLen(actual_seq, len(expected_seq), msg)
        for expected, actual in zip(expected_seq, actual_seq, strict=True):
            self.assertAlmostEqual(expected, actual, places, msg, delta)  # type: ignore[arg-type]  # one of the two

    def assertDictAlmostEqual(
        self,
        expected_dict: Any,
        actual_dict: Any,
        places: int | None = None,
        msg: str | None = None,
        delta: float | None = None,
    ) -> None:
        """Fails unless two dicts have the same keys and numbers that are almost equal."""
        self.assertEqual(set(expected_dict), set(actual_dict), msg)
        keys = list(expected_dict)
        self.assertSequenceAlmostEqual(
            [expected_dict[key] for key in keys], [actual_dict[key] for key in keys], places, msg, delta
        )

    def assertStartsWith(self, actual: str, expected_start: str, msg: str | None = None) -> None:
        """Fails unless a text begins with another."""
        self.assertTrue(actual.startswith(expected_start), msg or f"{actual!r} does not start with {expected_start!r}")

    def assertEndsWith(self, actual: str, expected_end: str, msg: str | None = None) -> None:
        """Fails unless a text ends with another."""
        self.assertTrue(actual.endswith(expected_end), msg or f"{actual!r} does not end with {expected_end!r}")

    def assertIsSubclass(self, subclass: type, superclass: type, msg: str | None = None) -> None:
        """Fails unless one class is derived from another."""
        self.assertTrue(issubclass(subclass, superclass), msg or f"{subclass} is not derived from {superclass}")

    # ---------------------------------------------------------------------------------------------------- exceptions
    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(
        self, exception_type: type[BaseException], expected_err_re_or_predicate: Any
    ) -> Iterator[None]:
        """A context manager that fails unless an exception is raised whose text matches, or that a function accepts."""
        try:
            yield
        except exception_type as error:
            test = expected_err_re_or_predicate
            accepted = test(error) if callable(test) else re.search(test, str(error))
            if not accepted:
                raise AssertionError(f"Exception of type {type(error)}: {error}") from error
        else:
            self.fail(f"{exception_type.__name__} not raised")

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> contextlib.AbstractContextManager[None]:
        """A context manager that fails unless an op raises an error whose text matches, or that a function accepts."""
        return self.assertRaisesWithPredicateMatch(OpError, expected_err_re_or_predicate)

    @contextlib.contextmanager
    def assertRaisesWithLiteralMatch(
        self, expected_exception: type[BaseException], expected_exception_message: str
    ) -> Iterator[None]:
        """A context manager that fails unless an exception with this text is raised."""
        with self.assertRaises(expected_exception) as caught:
            yield
        self.assertEqual(str(caught.exception), expected_exception_message)

    def assertRaisesIncompatibleShapesError(
        self, exception_type: type[BaseException] = InvalidArgumentError
    ) -> contextlib.AbstractContextManager[None]:
        """A context manager that fails unless shapes are refused that do not broadcast."""
        return self.assertRaisesWithPredicateMatch(
            exception_type, r"Incompatible shapes|Dimensions must be equal|required broadcastable shapes"
        )

    # ------------------------------------------------------------------------------------------------------ sessions
    @contextlib.contextmanager
    def session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = True, force_gpu: bool = False
    ) -> Iterator[EagerSession]:
        """A context manager for tests of TensorFlow 1: ops run at once, and `run` reads values."""
        yield EagerSession(self)

    cached_session = test_session = session


class EagerSession:
    """The session of TensorFlow 1 that a test's `session()` returns, for ops that have run already.

    Args:
        test: The test that reads values.
    """

    def __init__(self, test: TestCase) -> None:
        self._test = test

    def run(self, fetches: Any, feed_dict: Any = None) -> Any:
        """Returns the values of a structure of tensors as arrays.

        Raises:
            RuntimeError: Values are fed: there are no placeholders.
        """
        if feed_dict:
            raise RuntimeError("feed_dict is not supported when eager execution is enabled.")
        return self._test.evaluate(fetches)
