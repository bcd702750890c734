"""`tf.Variable`: a named, mutable tensor of a session. Tapes watch it when it is read.

Long because TensorFlow's class has this many methods.
"""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import numpy as np

from teletape.core.calls import dispatch
from teletape.core.calls.operators import cut_at
from teletape.core.errors import OutOfRangeError
from teletape.core.program.tracebacks import report, reports, reports_conversions
from teletape.core.sessions.current import current
from teletape.core.sessions.session import Session
from teletape.core.tensors import dtypes, printing
from teletape.core.tensors.tensor import EagerTensor, Tensor, TensorLike, copied, elsewhere, own_copy
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.core.variables import name_scope
from teletape.core.variables.scatter import ScatterMethods
from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.assign import check_broadcast, check_scatter
from teletape_engine.recording.values import Variable as Slot
from teletape_engine.spec import shape_text


def _refuse(name: str, sign: str, method: str, out: str) -> Callable[[Any, Any], NoReturn]:
    """Raises for an in-place operator, which TensorFlow does not have: `v += 1` would rebind the name to a tensor."""

    def refuse(self: Any, value: Any) -> NoReturn:
        raise RuntimeError(
            f"`{name} {sign}= value` with `tf.Variable`s is not supported. Use `{name}.{method}` to modify the "
            f"variable, or `out = {out}` if you need to get a new output Tensor."
        )

    return refuse


@reports_conversions
class Variable(ScatterMethods):
    """A mutable tensor: `tf.Variable(initial_value, trainable=True, name=None, dtype=None)`.

    Args:
        initial_value: Anything that `tf.convert_to_tensor` takes, or a function that returns it.
        trainable: Whether tapes watch it when it is read. None: True.
        name: Its name, without the ":0". Not made unique.
        dtype: The dtype to convert to.
        shape: The shape that each value must fit; None: that of the initial value. Sizes may be unknown.

    Raises:
        ValueError: No initial value; a shape or dtype that does not fit.
    """

    __slots__ = ("__weakref__", "_constraint", "_name", "_number", "recorded", "session")

    recorded: Slot

    def __new__(cls, *args: Any, shape: Any = None, **kwargs: Any) -> Variable:
        kind = ResourceVariable if cls is Variable else cls
        if shape is not None and cls is Variable and not TensorShape(shape).is_fully_defined():
            kind = importlib.import_module(
                "teletape.core.variables.resizable"
            ).ResizableVariable  # it builds on this class
        return object.__new__(kind)

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        import_scope: Any = None,
        constraint: Any = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: Any = None,
    ) -> None:
        if callable(initial_value) and not isinstance(initial_value, TensorLike):
            initial_value = initial_value()
        if initial_value is None:
            raise ValueError(
                "The `initial_value` arg to `tf.Variable` must be specified except when you are not providing a "
                "`variable_def`. You provided neither."
            )
        if name is not None and not isinstance(name, str):
            raise ValueError("name for name_scope must be a string.")
        self._name = name_scope.scoped("Variable" if name is None else name)
        try:
            value = dispatch.convert_to_tensor(initial_value, dtype)
        except ValueError as error:
            if isinstance(initial_value, TensorLike):
                raise ValueError(f"initial_value: {error}") from None
            raise
        if shape is not None and not TensorShape(shape).is_compatible_with(value.shape):
            raise ValueError(
                f"In this `tf.Variable` creation, the initial value's shape ({value.shape}) is not compatible with the "
                f"explicitly supplied `shape` argument ({shape})."
            )
        self._constraint = constraint
        owner = current()
        self.session = owner.home
        self.recorded = owner.variable(value.operand(), trainable=trainable is not False, name=self._name + ":0")
        self._number = self.recorded.uid
        self.recorded.owner = weakref.ref(self)

    @staticmethod
    def of(slot: Slot, owner: Session | None = None) -> Variable:
        """Returns the Variable of an engine variable: the program's own object while it lives, else a new one.

        Args:
            slot: The engine's variable.
            owner: Its session; None: the current one.
        """
        variable: Variable | None = slot.owner() if slot.owner is not None else None
        if variable is None:
            variable = object.__new__(ResourceVariable)
            variable._name = (slot.name or "Variable:0").removesuffix(":0")
            variable.session = (current() if owner is None else owner).home
            variable.recorded, variable._constraint = slot, None
            variable._number = slot.uid
            slot.owner = weakref.ref(variable)
        return variable

    def _same(self, kind: type[V]) -> V:
        """Returns another object for this variable."""
        other = object.__new__(kind)
        other._name, other.session, other.recorded = self._name, self.session, self.recorded
        other._constraint, other._number = self._constraint, self._number
        return other

    def standing_for(self, slot: Slot) -> Variable:
        """Returns a like object for another engine variable; a traced function gets it instead of this one."""
        other = object.__new__(type(self))
        other._name, other.session, other.recorded = self._name, self.session, slot
        other._constraint, other._number = self._constraint, self._number
        slot.owner = weakref.ref(other)
        return other

    def check_session(self) -> None:
        """Raises InvalidArgumentError if it belongs to another session than the current one."""
        if self.session is not current().home:
            raise InvalidArgumentError(f"variable {self.name!r} " + elsewhere(self, "variable", "tf.Variable"))

    def operand(self) -> Any:
        self.check_session()
        return current().recorder().read(self.recorded)

    @property
    def name(self) -> str:
        """The name with TensorFlow's ":0"."""
        return self._name + ":0"

    @property
    def trainable(self) -> bool:
        """Whether tapes watch it when it is read."""
        return self.recorded.trainable

    def is_initialized(self, name: str | None = None) -> Tensor:
        """Returns true: a variable has its value as soon as it is made."""
        return dispatch.constant(True)

    @property
    def constraint(self) -> Any:
        """The function that projects the value after an update of an optimizer, or None."""
        return self._constraint

    @property
    def _unique_id(self) -> str:
        """The id by which Keras's optimizers know the variable; the variable of a traced function has the same."""
        return f"{self._name}_{self._number}"

    @property
    def initializer(self) -> None:
        """None: a variable has its value as soon as it is made."""

    def set_shape(self, shape: Any) -> None:
        """Checks that the shape is compatible with `shape`; ValueError if not."""
        if not self.shape.is_compatible_with(shape):
            raise ValueError(f"Tensor's shape {self.shape} is not compatible with supplied shape {TensorShape(shape)}.")

    def read_value(self) -> Tensor:
        """The value now, as a tensor; a tape that is recording watches the variable."""
        return dispatch.as_tensor(self)

    value = read_value

    def _fetched(self) -> HostArray:
        owner = current()
        return (owner if owner.tracing else self.session).fetch(self.recorded.value)

    def numpy(self) -> Any:
        """The values: a new NumPy array, a NumPy scalar for rank 0."""
        return own_copy(self._fetched())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> HostArray:
        return copied(self._fetched(), dtype, copy)

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Replaces the value.

        Args:
            value: Of the variable's shape; Python values and arrays take its dtype.
            use_locking: Accepted, without effect.
            name: Accepted, without effect.
            read_value: Whether to return anything.

        Returns:
            Another object for this variable: it has the variable's value, also after later assignments.

        Raises:
            ValueError: Another shape, or a tensor of another dtype.
        """
        try:
            operand = self._operand_for(value)
            if operand.spec.shape != self.recorded.spec.shape:
                raise ValueError(
                    f"Cannot assign value to variable ' {self.name}': Shape mismatch.The variable shape {self.shape}, "
                    f"and the assigned value shape {TensorShape(operand.spec.shape)} are incompatible."
                )
            return self._assign(operand, "set", read_value)
        except BaseException as error:
            report(error)
            raise

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds `delta`, of the variable's shape; see `assign`."""
        try:
            return self._assign(self._same_shape(delta, "add"), "add", read_value)
        except BaseException as error:
            report(error)
            raise

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts `delta`, of the variable's shape; see `assign`."""
        try:
            return self._assign(self._same_shape(delta, "sub"), "sub", read_value)
        except BaseException as error:
            report(error)
            raise

    def count_up_to(self, limit: Any) -> Tensor:
        """Adds 1 to an int32 or int64 scalar, and returns the value before.

        Raises:
            InvalidArgumentError: Another dtype or rank.
            teletape.errors.OutOfRangeError: The variable has reached `limit`; it does not change.
        """
        if self.dtype not in (dtypes.int32, dtypes.int64):
            raise InvalidArgumentError(
                f"Value for attr 'T' of {self.dtype.name} is not in the list of allowed values: int32, int64"
            )
        if self.shape.rank:
            raise InvalidArgumentError(f"input is not a scalar: {self.shape}")
        before = self.read_value()
        if int(before) >= int(limit):
            raise OutOfRangeError(f"Reached limit of {int(limit)}")
        self.assign_add(1)
        return before

    def _serialize_to_tensors(self) -> dict[str, Variable]:
        """The values that a checkpoint saves, by component. TensorFlow's protocol, which Keras's variables call."""
        return {"VARIABLE_VALUE": self}

    def _restore_from_tensors(self, tensors: dict[str, Any]) -> None:
        """Restores the value; the inverse of `_serialize_to_tensors`."""
        self.assign(tensors["VARIABLE_VALUE"], read_value=False)

    def _operand_for(self, value: Any) -> Any:
        """Returns a value of the variable's dtype, as an input of an assignment."""
        self.check_session()
        return dispatch.convert_to_tensor(value, self.dtype).operand()

    def _same_shape(self, delta: Any, mode: str) -> Any:
        operand = self._operand_for(delta)
        if self.dtype.is_bool or self.dtype is dtypes.string:
            raise InvalidArgumentError(
                f"a variable of dtype {self.dtype.name} takes no assign_{mode}: only numbers are added and subtracted "
                f"[Op:Assign{mode.title()}VariableOp]"
            )
        if operand.spec.shape != self.recorded.spec.shape:
            raise InvalidArgumentError(
                f"Cannot update variable with shape {shape_text(self.recorded.spec.shape)} using a Tensor with shape "
                f"{shape_text(operand.spec.shape)}, shapes must be equal. [Op:Assign{mode.title()}VariableOp]"
            )
        return operand

    def _assign(self, value: Any, mode: str, read_value: bool) -> Any:
        current().assign(self.recorded, value, mode)
        return self._same(_UnreadVariable) if read_value else None

    @reports
    def _scattered(self, mode: str, indices: Any, updates: Any) -> Any:
        value, at = self._operand_for(updates), dispatch.convert_to_tensor(indices).operand()
        check_scatter(self.recorded.spec, value.spec, at.spec, mode)
        current().assign(self.recorded, value, mode, at)
        return self._same(_UnreadVariable)

    def __getitem__(self, key: Any) -> Tensor:
        if isinstance(key, TensorLike | np.ndarray) and dispatch.convert_to_tensor(key).dtype.is_bool:
            return super().__getitem__(key)
        return _Sliced(super().__getitem__(key), self, key)

    def __hash__(self) -> int:
        raise TypeError(f"Variable is unhashable. Instead, use variable.ref() as the key. (Variable: {self!r})")

    def __bool__(self) -> bool:
        return bool(self.read_value())

    def __float__(self) -> float:
        return float(self.read_value())

    def __int__(self) -> int:
        return int(self.read_value())

    def __complex__(self) -> complex:
        return complex(self.read_value())

    def __index__(self) -> int:
        return self.read_value().__index__()

    def __iter__(self) -> Any:
        return iter(self.read_value())

    def __len__(self) -> NoReturn:
        raise TypeError("object of type 'ResourceVariable' has no len()")

    def __repr__(self) -> str:
        if current().tracing:
            return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}>"
        return printing.variable_repr(self.numpy(), self.shape, self.dtype, self.name)

    def __deepcopy__(self, memo: Any) -> Variable:
        copied = type(self)(self.read_value(), trainable=self.trainable, name=self._name)
        memo[id(self)] = copied
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), np.asarray(self.numpy()), self.trainable, self._name)

    __iadd__ = _refuse("variable", "+", "assign_add(value)", "variable + value")
    __isub__ = _refuse("variable", "-", "assign_sub(value)", "variable - value")
    __imul__ = _refuse("var", "*", "assign(var * value)", "var * value")
    __itruediv__ = _refuse("var", "/", "assign(var / value)", "var / value")
    __ipow__ = _refuse("var", "**", "assign(var ** value)", "var ** value")


class ResourceVariable(Variable):
    """The class of the objects that `tf.Variable(…)` returns. Programs may set attributes on it."""


class _Sliced(EagerTensor):
    """A slice of a variable: a tensor with its present values, and `assign`, which changes the variable's slice."""

    __slots__ = ("_index", "_variable")

    def __init__(self, read: Tensor, variable: Variable, index: Any) -> None:
        self.recorded, self.session = read.recorded, read.session
        self._variable, self._index = variable, index

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Replaces this slice of the variable by `value`, which broadcasts; the rest stays. See `Variable.assign`."""
        variable, shape = self._variable, self.recorded.spec.shape
        tensor = dispatch.convert_to_tensor(value, self.dtype)
        check_broadcast(tensor.recorded.spec.shape, shape)
        if tensor.recorded.spec.shape != shape:
            tensor = dispatch.call(ops.broadcast_to, (tensor,), shape=shape)
        cut, counts = cut_at(variable.recorded.spec.shape, self._index)
        if shape != counts:
            tensor = dispatch.call(ops.reshape, (tensor,), shape=counts)
        assigned = variable._scattered("slice", cut, tensor)
        return assigned if read_value else None


_Sliced.__name__ = _Sliced.__qualname__ = "EagerTensor"


class _UnreadVariable(Variable):
    """The variable as an assignment returns it."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name, which is not that of the variable, as in TensorFlow."""
        return "UnreadVariable"


V = TypeVar("V", bound=Variable)


def _unpickled(kind: type[Variable], array: HostArray, trainable: bool, name: str) -> Variable:
    variable = kind(array, trainable=trainable)
    variable._name = name
    return variable


Session.as_variable = staticmethod(Variable.of)
