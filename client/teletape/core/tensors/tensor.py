"""`tf.Tensor`: a handle on a value of a session, with TensorFlow's conversions and texts.

Its operators are in calls/operators.py. Long because every conversion and text of TensorFlow's is a method.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np

from teletape.core.program import host_memory
from teletape.core.program.call_site import caller
from teletape.core.program.missing_names import MissingAttribute
from teletape.core.program.tracebacks import report, reports, reports_conversions
from teletape.core.sessions.current import current
from teletape.core.sessions.sending.event_loops import check_loop
from teletape.core.sessions.session import Session
from teletape.core.tensors import dtypes, printing
from teletape.core.tensors.dtypes import DType
from teletape.core.tensors.exchange import CPU, dlpack_of
from teletape.core.tensors.tensor_shape import TensorShape, shape_of
from teletape_engine.arrays import HostArray
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import INTEGER


@reports_conversions
class TensorLike:
    """The common base class of tensors and variables: TensorFlow's operators, and the interface for ops."""

    __slots__ = ()
    __array_priority__ = 100  # so that np.ndarray + tensor calls the tensor's reflected operator
    __hash__: Any
    recorded: Any  #: The recorder's value, or the engine's variable. Both have a `spec`.
    session: Session  #: The session that it belongs to.

    if TYPE_CHECKING:  # calls/operators.py defines them

        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __rfloordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __rmod__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __rand__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __ror__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __rxor__(self, other: Any) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __eq__(self, other: object) -> Tensor: ...  # type: ignore[override]  # elementwise
        def __ne__(self, other: object) -> Tensor: ...  # type: ignore[override]  # elementwise
        def __abs__(self) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __getitem__(self, key: Any) -> Tensor: ...

    @property
    def shape(self) -> TensorShape:
        """Static shape."""
        return shape_of(self.recorded.spec.shape)

    @property
    def dtype(self) -> DType:
        """Element type."""
        return dtypes.as_dtype(self.recorded.spec.dtype)

    def numpy(self) -> Any:
        """The values: a new NumPy array, a NumPy scalar for rank 0, bytes for a string."""
        raise NotImplementedError  # pragma: no cover - abstract

    def __int__(self) -> int:
        raise NotImplementedError  # pragma: no cover - abstract

    def operand(self) -> Any:
        """The recorded value as an input of an op of the current session; a variable is read."""
        raise NotImplementedError  # pragma: no cover - abstract

    @property
    def device(self) -> str:
        """The device, in TensorFlow's form: the job is the server's address, or localhost for this process."""
        return self.session.home.device_name

    def __await__(self) -> Generator[Any, Any, Any]:
        """Waits for the values, as `numpy` returns them, while an event loop of asyncio or trio goes on.

        A cancelled task leaves the wait, and the server stops what no other reader waits for.

        Raises:
            RuntimeError: There is no event loop.
        """
        check_loop()
        return self._awaited().__await__()

    async def _awaited(self) -> Any:
        if self.session.tracing:
            return self.numpy()
        (array,) = await self.session.fetch_later([current_value(self)])
        return own_copy(array)

    def __dlpack__(self, **options: Any) -> Any:
        return dlpack_of(self.numpy(), **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU

    def get_shape(self) -> TensorShape:
        """The static shape."""
        return self.shape

    def ref(self) -> Reference:
        """A hashable reference to this object, for sets and dictionary keys."""
        return Reference(self)


#: The methods of Python's operators; calls/operators.py defines them, and needs this module.
_OPERATORS: Final = tuple(
    f"__{name}__"
    for name in """
    add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul and rand or ror xor
    rxor lt le gt ge eq ne abs neg invert getitem
    """.split()
)


def _first_use(name: str) -> Callable[..., Any]:
    """Returns an operator that loads all operators, which replace it and its like, and calls the one of its name."""

    @reports
    def operate(self: TensorLike, *others: Any) -> Any:
        importlib.import_module("teletape.core.calls.operators").give_operators()
        return getattr(TensorLike, name)(self, *others)

    return operate


for _operator in _OPERATORS:
    setattr(TensorLike, _operator, _first_use(_operator))


def own_copy(array: HostArray) -> Any:
    """Returns a session's array as `numpy` does: a new one, or a NumPy scalar for rank 0."""
    return array[()] if array.ndim == 0 else host_memory.copy(array)


def current_value(tensor: TensorLike) -> Any:
    """Returns the recorded value of a tensor, or of a variable's present value."""
    return getattr(tensor.recorded, "value", tensor.recorded)


class Tensor(TensorLike):
    """The class of all tensors. Variables are not instances. Functions such as `tf.constant` make tensors."""

    __slots__ = ()

    if TYPE_CHECKING:  # EagerTensor defines them: every tensor is one
        name: str

        @property
        def ndim(self) -> int: ...

        def __array__(self, dtype: Any = None, copy: bool | None = None) -> HostArray: ...
        def __bool__(self) -> bool: ...
        def __complex__(self) -> complex: ...
        def __float__(self) -> float: ...
        def __index__(self) -> int: ...
        def __iter__(self) -> Iterator[Tensor]: ...
        def __len__(self) -> int: ...
        def set_shape(self, shape: Any) -> None: ...


def copied(array: HostArray, dtype: Any, copy: bool | None) -> HostArray:
    """Returns a copy of an immutable value for `__array__`.

    Raises:
        ValueError: The caller wants no copy.
    """
    if copy is False:
        raise ValueError(
            "unable to avoid a copy: the elements of a tensor or variable are immutable or elsewhere; "
            "np.asarray(value) copies them"
        )
    return np.array(array, dtype)


@reports_conversions
class EagerTensor(Tensor):
    """An immutable array in a session. Programs may set attributes on it."""

    __slots__ = ("__dict__", "__weakref__", "recorded", "session")

    def __init__(self, value: Any, owner: Session) -> None:
        self.recorded = value
        self.session = owner

    def operand(self) -> Any:
        owner = current()
        if self.session is owner:
            return self.recorded
        adopted = owner.adopt(self.recorded, self.session)
        return _foreign(self) if adopted is None else adopted

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.recorded.spec.shape)

    def set_shape(self, shape: Any) -> None:
        """Checks that the shape is compatible with `shape`; ValueError if not.

        In a dataset's function it states the sizes that all results have.
        """
        if not self.shape.is_compatible_with(shape):
            raise ValueError(f"Tensor's shape {self.shape} is not compatible with supplied shape {TensorShape(shape)}.")
        self.stated_shape = TensorShape(shape)

    def numpy(self) -> Any:
        """The values: a new NumPy array, a NumPy scalar for rank 0, bytes for a string."""
        try:
            if self.session.tracing and not current().tracing and getattr(self.recorded, "host", None) is None:
                raise AttributeError("'SymbolicTensor' object has no attribute 'numpy'")  # of a traced function
            return own_copy(self.session.fetch(self.recorded))
        except BaseException as error:
            report(error)
            raise

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> HostArray:
        return copied(self.session.fetch(self.recorded), dtype, copy)

    def _scalar(self) -> Any:
        if self.recorded.spec.shape:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        return self.session.fetch(self.recorded)[()]

    def cpu(self) -> Tensor:
        """The tensor itself: its elements come to this process when they are read."""
        return self

    def gpu(self, gpu_index: int = 0) -> Tensor:
        """The tensor itself, if its session computes on a GPU.

        Raises:
            RuntimeError: It does not.
        """
        if "GPU" not in self.device:
            raise RuntimeError(f"GPU:{gpu_index} unknown device.")
        return self

    def __float__(self) -> float:
        return float(self._scalar())

    def __int__(self) -> int:
        return int(self._scalar())

    def __complex__(self) -> complex:
        return complex(self._scalar())

    def __index__(self) -> int:
        if self.recorded.spec.dtype not in INTEGER or self.recorded.spec.shape:
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return int(self._scalar())

    def __bool__(self) -> bool:
        if self.recorded.spec.size == 0:
            return False
        if self.recorded.spec.size != 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
            )
        return bool(self.session.fetch(self.recorded).reshape(-1)[0])

    def __len__(self) -> int:
        if not self.recorded.spec.shape:
            raise TypeError("Scalar tensor has no `len()`")
        return int(self.recorded.spec.shape[0])

    def __iter__(self) -> Iterator[Tensor]:
        if not self.recorded.spec.shape:
            raise TypeError("Cannot iterate over a scalar tensor.")
        count = self.recorded.spec.shape[0]
        if self.session.local or self.session.tracing:
            return (self[i] for i in range(count))
        return self._rows(count, self.session.row_counts(caller()))

    def _rows(self, count: int, counts: tuple[int, Callable[[int], None]]) -> Iterator[Tensor]:
        """The rows of a tensor on a server, read in groups: the first has as many as the line took the last time."""
        (most, note), first, rows = counts, 0, 0
        try:
            while first < count:
                last = min(count, max(1, most, 2 * first))
                for row in together([self[i] for i in range(first, last)]):
                    rows += 1
                    yield row
                first = last
        finally:
            note(rows)

    def __hash__(self) -> int:
        raise TypeError("Tensor is unhashable. Instead, use tensor.ref() as the key.")

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return from_host, (np.asarray(self.numpy()),)

    def __format__(self, spec: str) -> str:
        return format(str(self) if self.session.tracing else self.numpy(), spec)

    def __repr__(self) -> str:
        if self.session.tracing:
            return f"<tf.Tensor '{self.name}' shape={self.shape} dtype={self.dtype.name}>"
        return printing.tensor_repr(self.numpy(), self.shape, self.dtype)

    def __str__(self) -> str:
        if self.session.tracing:
            return f'Tensor("{self.name}", shape={self.shape}, dtype={self.dtype.name})'
        return printing.tensor_str(self.numpy(), self.shape, self.dtype)

    def __getattr__(self, name: str) -> Any:
        if name == "name" and self.session.tracing:
            return self.recorded.name
        if name in ("astype", "ravel", "transpose", "reshape", "clip", "size", "tolist", "data", "T"):
            raise AttributeError(
                f"EagerTensor object has no attribute '{name}'. \n        If you are looking for numpy-related "
                "methods, please run the following:\n"
                "        tf.experimental.numpy.experimental_enable_numpy_behavior()\n      "
            )
        if name in ("name", "op", "graph"):
            raise AttributeError(f"Tensor.{name} is undefined when eager execution is enabled.")
        raise AttributeError(MissingAttribute(Tensor, name, "EagerTensor"), name=name, obj=self)


def together(tensors: list[Tensor]) -> list[Tensor]:
    """Returns tensors of one call, and notes that they belong together: a read of one brings the others."""
    if tensors:
        owner = tensors[0].session
        owner.made_together([tensor.recorded for tensor in tensors])
    return tensors


def from_host(array: HostArray) -> Tensor:
    """A tensor of the current session with the values of a host array, which the caller must not use afterwards."""
    owner = current()
    return EagerTensor(owner.constant(array), owner)


def _of_session(value: Any, owner: Session) -> Tensor:
    return EagerTensor(value, owner)


Session.as_tensor = staticmethod(_of_session)


class Reference:
    """A hashable reference to a tensor or variable; references to the same object are equal. See `tensor.ref()`.

    References can be sorted, because `tf.nest` sorts the keys of a dict; the order has no meaning.
    """

    __slots__ = ("_object",)

    def __init__(self, referred: Any) -> None:
        self._object = referred

    def deref(self) -> Any:
        """The object."""
        return self._object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._object is other._object

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Reference):
            return NotImplemented
        return id(self._object) < id(other._object)

    def __hash__(self) -> int:
        return id(self._object)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._object!r}>"


def _foreign(tensor: Tensor) -> NoReturn:
    if tensor.session.tracing:
        raise TypeError(
            f"{tensor!r} is out of scope and cannot be used here. Use return values, explicit Python locals or "
            "TensorFlow collections to access it.\nPlease see "
            "https://www.tensorflow.org/guide/function#all_outputs_of_a_tffunction_must_be_return_values for more "
            "information."
        )
    raise InvalidArgumentError(f"a tensor of shape {tensor.shape} " + elsewhere(tensor, "tensor", "tf.constant"))


def elsewhere(tensor: TensorLike, subject: str, maker: str) -> str:
    """Returns the message for a tensor or variable that belongs to another session than the op.

    Args:
        tensor: The tensor or variable.
        subject: Its name in the suggested code.
        maker: The function in the suggested code that makes another one from its values.
    """
    owner, here = tensor.session, current().home
    text = f"belongs to another session than the current one: it is in {owner.place}, the op runs in {here.place}"
    if owner.closed is not None:
        value = current_value(tensor)
        if getattr(value, "host", None) is not None:
            return f"{text}. Its last values are known here: {maker}({subject}.numpy()) has them in this session"
        return (
            f"{text}. Its values were not read and are lost: compute them again in this session. "
            "tf.train.Checkpoint and tf.keras.callbacks.BackupAndRestore keep values for another session"
        )
    return (
        f"{text}. Compute in its session, `with {subject}.session.as_default():`, or bring its values here, "
        f"{maker}({subject}.numpy())"
    )
