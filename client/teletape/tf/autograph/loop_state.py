"""The variables of a loop on tensors: before it, after it, and the check that an iteration keeps their kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from teletape.core.calls.dispatch import as_tensor
from teletape.core.functions.trace import NotTraceable, trace
from teletape.core.tensors import nest
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.tf import debugging
from teletape.tf.autograph.state import Undefined, UndefinedReturnValue, is_undefined
from teletape.tf.control_flow.growth import REMEDY, Unbounded
from teletape.tf.control_flow.packing import has_unknown_elements, is_dynamic, tensor_of, tensors_of, with_room
from teletape.tf.control_flow.tensor_array import TensorArray
from teletape.tf.ops.arrays.create import zeros

GetState: TypeAlias = Callable[[], tuple[Any, ...]]
SetState: TypeAlias = Callable[[Sequence[Any]], None]

_LEGAL: Final = "Tensor, int, float, bool or a list, tuple or dict thereof"
_RETURN: Final = (
    "a return statement cannot be placed inside this TensorFlow loop; this may happen if a return statement depends on "
    "a static Python condition such as a hyperparameter"
)


class Variables(NamedTuple):
    """The variables of a loop.

    Attributes:
        get: Returns them.
        set: Sets them.
        names: Their names.
        opts: The options of `set_loop_options`, and for a `for` the name of the element.
    """

    get: GetState
    set: SetState
    names: Sequence[str]
    opts: dict[str, Any]


class Loop:
    """A loop that becomes one command.

    Args:
        body: Runs an iteration.
        variables: The loop variables.

    Attributes:
        tensors: The tensors of the loop variables before the loop.
    """

    def __init__(self, body: Callable[[], None], variables: Variables) -> None:
        self._body, self._variables = body, variables
        self._before = variables.get()
        self._invariants = _invariants(variables.opts, self._before)
        self._undefined = [is_undefined(value) for value in self._before]
        self.tensors: list[Tensor] = []

    def begin(self, most: int | None = None) -> None:
        """Finds the loop variables' tensors; those without a value become zeros.

        Args:
            most: The largest number of iterations; None: not known.

        Raises:
            ValueError, NotImplementedError: See `_placeholders`.
        """
        try:
            state = with_room(self._before, self._following, most)
        except (UnboundLocalError, TypeError, ValueError, KeyError):
            state = self._before  # it is raised again, with the names of the variables
        finally:
            self._variables.set(self._before)
        if any(self._undefined) or has_unknown_elements(state):
            state = _placeholders(self._body, self._variables, state, self._undefined)
        self.tensors, self._packing = tensors_of(([False] if any(self._undefined) else [], state))

    def _following(self, state: Any) -> Any:
        self._variables.set(state)
        self._body()
        return tuple(self._variables.get())

    def set(self, values: Sequence[Tensor]) -> Any:
        """Sets the loop variables from their tensors, and returns them."""
        state = self._packing.state(values)[1]
        self._variables.set(state)
        return state

    def step(self, *values: Tensor) -> list[Tensor]:
        """Runs an iteration, and returns the tensors of the loop variables after it.

        Raises:
            ValueError, TypeError: A loop variable that changes its shape, dtype or structure.
        """
        entry = self.set(values)
        self._body()
        after = tuple(self._variables.get())
        for name, first, last, invariant in zip(self._variables.names, entry, after, self._invariants, strict=True):
            _check_variable(name, first, last, invariant)
        return tensors_of(([True] if any(self._undefined) else [], after))[0]

    def end(self, results: Sequence[Tensor]) -> None:
        """Sets the loop variables after the loop; it must have run if one of them had no value before."""
        flag, state = self._packing.state(results)
        if flag:
            missing = ", ".join(
                "the function return value" if isinstance(value, UndefinedReturnValue) else name
                for name, value, absent in zip(self._variables.names, self._before, self._undefined, strict=True)
                if absent
            )
            debugging.Assert(flag[0], [f"loop must iterate at least once to initialize {missing}"])
        self._variables.set(state)


def check_before(before: Sequence[Any], names: Sequence[str]) -> None:
    """Raises unless every loop variable has a value before the loop.

    Raises:
        NotImplementedError: There is a `return` in the loop.
        ValueError: One of them has none, or None.
    """
    for name, value in zip(names, before, strict=True):
        if isinstance(value, UndefinedReturnValue):
            raise NotImplementedError(_RETURN)
        if is_undefined(value):
            what = "is not allowed to be None before the loop" if value is None else "must be defined before the loop"
            raise ValueError(f"'{name}' {what}")


def _invariants(opts: dict[str, Any], before: Sequence[Any]) -> list[Any]:
    """Returns the shape invariant of each loop variable by `set_loop_options`; None: its own shape."""
    by_id = {id(value): TensorShape(shape) for value, shape in opts.get("shape_invariants", ())}
    return [by_id.get(id(value)) for value in before]


def _check_variable(name: str, entry: Any, last: Any, invariant: TensorShape | None) -> None:
    """Raises unless a loop variable keeps its structure, shapes and dtypes in an iteration."""
    try:
        nest.assert_same_structure(entry, last)
    except (TypeError, ValueError) as error:
        raise TypeError(f"'{name}' does not have the same nested structure after one iteration.\n\n{error}") from error
    pairs = [nest.flatten(each, expand_composites=True) for each in (entry, last)]
    for first, second in zip(*pairs, strict=True):
        if second is None and first is not None:
            raise ValueError(f"'{name}' is None at the end of the iteration.")
        if not (is_dynamic(first) and is_dynamic(second)):
            if isinstance(first, TensorArray) and isinstance(second, TensorArray):
                if len(first) != len(second):
                    raise NotTraceable("changes the size of a TensorArray in a loop on tensors", REMEDY)
            elif is_dynamic(first) or is_dynamic(second) or first is not second:
                raise TypeError(
                    f"'{name}' is a {type(first).__name__} before the loop, and another {type(second).__name__} after "
                    f"one iteration: a loop variable may only be a {_LEGAL}"
                )
            continue
        old, new = tensor_of(first), tensor_of(second)
        if old.dtype is not new.dtype:
            raise TypeError(
                f"'{name}' has dtype {old.dtype.name} before the loop, but dtype {new.dtype.name} after one iteration"
            )
        if old.shape != new.shape:
            if invariant is not None and invariant.is_compatible_with(new.shape):
                raise Unbounded("changes the shape of a loop variable in a loop on tensors", unrolled=True)
            raise ValueError(
                f"'{name}' has shape {old.shape} before the loop, but shape {new.shape} after one iteration. Use "
                "tf.autograph.experimental.set_loop_options to set shape invariants."
            )


# ------------------------------------------------------------------------------------------------- undefined variables
def _placeholders(
    body: Callable[[], None], variables: Variables, before: tuple[Any, ...], undefined: Sequence[bool]
) -> tuple[Any, ...]:
    """Returns the loop variables, with zeros for those without a value; one iteration shows their kind.

    Raises:
        ValueError: An iteration gives one of them no value.
        NotImplementedError: A return that depends on a Python condition.
    """
    values, packing = tensors_of(before)
    first: tuple[Any, ...] | None = None
    note = ""

    def iteration(*tensors: Tensor) -> None:
        nonlocal first
        variables.set(packing.state(tensors))
        body()
        first = tuple([nest.map_structure(_shape_of, value) for value in variables.get()])

    try:
        trace(iteration, [value.recorded.spec for value in values])
    except (UnboundLocalError, TypeError, ValueError, KeyError) as error:
        note = f"\nNote: AutoGraph tried to define it automatically, but ran into a {type(error).__name__}: {error}"
    finally:
        variables.set(before)
    after = first if first is not None else (None,) * len(variables.names)
    filled = list(before)
    for i, absent in enumerate(undefined):
        if absent and not is_undefined(after[i]):
            filled[i] = nest.map_structure(_zero, after[i])
        elif first is not None and has_unknown_elements(filled[i]):
            filled[i] = nest.map_structure(_with_shape, filled[i], after[i])
    for name, value, last in zip(variables.names, filled, after, strict=True):
        if isinstance(value, UndefinedReturnValue):
            if last is not None and not isinstance(last, UndefinedReturnValue):
                raise ValueError(f"the return value from a TensorFlow loop may only be a {_LEGAL}; got {type(last)}")
            raise NotImplementedError(_RETURN)
        if value is None:
            raise ValueError(f"'{name}' is not allowed to be None before the loop{note}")
        if isinstance(value, Undefined):
            raise ValueError(f"'{name}' must be defined before the loop{note}")
    return tuple(filled)


class _Shape:
    """The shape and dtype of a tensor of another trace."""

    def __init__(self, tensor: Tensor) -> None:
        self.shape, self.dtype = tensor.shape.as_list(), tensor.dtype


class _ElementShape:
    """The kind of a TensorArray of another trace."""

    def __init__(self, array: TensorArray) -> None:
        self.dtype, self.size, self.dynamic_size = array.dtype, len(array), array.dynamic_size
        self.shape = array.element_shape


def _with_shape(leaf: Any, later: Any) -> Any:
    return leaf.of_shape(later.shape) if isinstance(leaf, TensorArray) else leaf


def _shape_of(leaf: Any) -> Any:
    """Returns the kind of a leaf, which is valid outside of the leaf's trace."""
    if isinstance(leaf, TensorArray):
        return _ElementShape(leaf)
    return _Shape(as_tensor(leaf)) if isinstance(leaf, TensorLike) else leaf


def _zero(leaf: Any) -> Any:
    if isinstance(leaf, _Shape):
        return zeros(leaf.shape, leaf.dtype)
    if isinstance(leaf, _ElementShape):
        return TensorArray(leaf.dtype, leaf.size, leaf.dynamic_size, element_shape=leaf.shape)
    return type(leaf)(0) if isinstance(leaf, bool | int | float) else leaf
