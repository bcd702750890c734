"""Turns Python values into an op's inputs, and calls the op: the SDK runs every op this way."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from teletape.core.program.call_site import Where, latest_code, new_call_site
from teletape.core.program.registered_conversions import converted
from teletape.core.program.tracebacks import report
from teletape.core.sessions.current import current
from teletape.core.tensors import dtypes
from teletape.core.tensors.composite import Composite, RaggedValue
from teletape.core.tensors.convert import fits, host_array, wrapped
from teletape.core.tensors.dtypes import DType
from teletape.core.tensors.indexed_slices import IndexedSlices
from teletape.core.tensors.tensor import EagerTensor, Tensor, TensorLike, from_host
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.core.tensors.variable_wrapper import unwrapped
from teletape_engine.catalogue.attributes import NO_ATTRS, Attrs
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op, Trait
from teletape_engine.recording.values import Literal
from teletape_engine.spec import BOOL, DIFFERENTIABLE, INTEGER

_NUMBERS: Final = (float, int)
_INT32: Final = dtypes.int32.np


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor with the values of `value`, a copy.

    Args:
        value: Numbers, strings, nested lists of them, or arrays; or an object with a method `__tf_tensor__` or of a
            type with a registered conversion.
        dtype: Its dtype; by default int32, float32, bool, complex128 or string for Python values, an array's own.
        shape: The shape to give it; one value fills it.
        name: Accepted, without effect.

    Raises:
        TypeError: A value that the dtype cannot hold; a shape of another size.
        ValueError: No tensor can be made of it.

    Example:
        tf.constant([1, 2, 3, 4], dtype=tf.float32, shape=[2, 2])
    """
    try:
        wanted = None if dtype is None else dtypes.as_dtype(dtype)
        if isinstance(value, TensorLike):
            tensor: Any = unwrapped(value)
            if not isinstance(tensor, EagerTensor):
                tensor = call(ops.stop_gradient, (tensor,))  # a constant of the variable's present value
            if wanted is not None and tensor.dtype is not wanted:
                raise TypeError(
                    f"Expected tensor {tensor.numpy()} with dtype {wanted!r}, but got dtype {tensor.dtype!r}."
                )
            return tensor  # type: ignore[no-any-return]  # a tensor
        if hasattr(value, "__tf_tensor__"):
            own: Tensor = value.__tf_tensor__(wanted, name)
            return own
        registered: Tensor | None = converted(value, wanted, name)
        if registered is not None:
            return registered
        array = host_array(value, wanted)
        if shape is not None:
            dims = tuple(TensorShape(shape).as_list())
            size = int(np.prod(dims, dtype=np.int64))
            if array.size == size:
                array = array.reshape(dims)
            elif array.size == 1:
                array = np.full(dims, array.reshape(-1)[0], array.dtype)
            else:
                raise TypeError(
                    f"Eager execution of tf.constant with unsupported shape. Tensor {array} (converted from {value}) "
                    f"has {array.size} elements, but got `shape` {TensorShape(shape)} with {size} elements)."
                )
        return from_host(array)
    except BaseException as error:
        report(error)
        raise


def convert_to_tensor(value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None) -> Tensor:
    """A tensor of `value`; tensors stay, variables are read, lists that hold tensors are stacked.

    Args:
        value: Anything that `constant` takes, tensors, variables, IndexedSlices (made dense), or lists with them.
        dtype: Required dtype.
        dtype_hint: Used where it fits, else ignored.
        name: Accepted, without effect.

    Raises:
        ValueError: A tensor of another dtype than `dtype`; no tensor can be made of it.
        TypeError: A Python value that the dtype cannot hold.

    Example:
        tf.convert_to_tensor([1.0, 2.0], dtype=tf.float64)
    """
    try:
        wanted = None if dtype is None else dtypes.as_dtype(dtype)
        if isinstance(value, TensorLike | IndexedSlices):
            value = unwrapped(value)
            if wanted is not None and value.dtype is not wanted:
                if not isinstance(value, EagerTensor | IndexedSlices):
                    raise ValueError(
                        f"Incompatible type conversion requested to type {wanted.name} for `tf.Variable of type "
                        f"{value.dtype.name}. (Variable: {value!r})"
                    )
                raise ValueError(
                    f"Tensor conversion requested dtype {wanted.name} for Tensor with dtype {value.dtype.name}: "
                    f"{value!r}"
                )
            return as_tensor(value)
        if isinstance(value, list | tuple) and holds_tensors(value):
            return _stacked(value, wanted)
        if wanted is None and dtype_hint is not None:
            try:
                return constant(value, dtype_hint)
            except (TypeError, ValueError):
                pass
        return constant(value, wanted)
    except BaseException as error:
        report(error)
        raise


def as_tensor(value: Any) -> Tensor:
    """A tensor, variable or IndexedSlices as a tensor; each reading of a variable is a new value."""
    if isinstance(value, EagerTensor):
        return value
    if isinstance(value, IndexedSlices):
        if value.dense_shape is None:
            raise ValueError(
                f"Tensor conversion requested for IndexedSlices for argument `value` without dense_shape: {value}"
            )
        rows = value.shape.as_list()[0]
        return call(ops.unsorted_segment_sum, (value.values, value.indices), num_segments=rows)
    return call(ops.identity, (value,))


def known_elements(x: TensorLike) -> Any:
    """The elements of a tensor as an array, if they are known without a request; else None.

    In a function that is traced only constants are known.
    """
    return x.numpy() if current().local else getattr(x.operand(), "host", None)


def is_tensor(x: Any) -> bool:
    """Whether `x` is a tensor, a variable, IndexedSlices, a sparse or a ragged tensor. By hand: no op.

    Example:
        tf.is_tensor([1.0, 2.0])
    """
    return isinstance(x, TensorLike | Composite)


def is_symbolic_tensor(tensor: Any) -> bool:
    """Whether `tensor` belongs to a function that is being traced, and so has no value yet; not for variables.

    By hand: no op.

    Example:
        tf.is_symbolic_tensor(tf.constant(1.0))
    """
    return isinstance(tensor, Tensor) and tensor.session.tracing


def holds_tensors(value: Any) -> bool:
    """Whether a (nested) list has a tensor or variable in it, or a ragged tensor."""
    return any(
        isinstance(item, TensorLike | RaggedValue) or (isinstance(item, list | tuple) and holds_tensors(item))
        for item in value
    )


def holds_nothing(value: Any) -> bool:
    """Whether a value is a (nested) list without elements."""
    return isinstance(value, list | tuple) and all(holds_nothing(item) for item in value)


def _stacked(value: Sequence[Any], dtype: DType | None) -> Tensor:
    """A list with tensors in it as one tensor; with a dtype its leaves are cast to that."""
    leaf = dtype or _first_dtype(value)
    rows = []
    for item in value:
        if isinstance(item, list | tuple) and holds_tensors(item):
            rows.append(_stacked(item, dtype))
        else:
            row = convert_to_tensor(item, None if isinstance(item, TensorLike) else leaf)
            cast = dtype is not None and row.dtype is not dtype
            rows.append(call(ops.cast, (row,), dtype=leaf.np) if cast and leaf is not None else row)
    return call(ops.stack, rows, axis=0)


def _first_dtype(value: Any) -> DType | None:
    for item in value:
        dtype = (
            item.dtype
            if isinstance(item, TensorLike)
            else _first_dtype(item)
            if isinstance(item, list | tuple)
            else None
        )
        if dtype is not None:
            return dtype
    return None


def call(op: Op, args: Sequence[Any], **attrs: Any) -> Tensor:
    """Runs `op` on tensors, variables, numbers, arrays and lists; the others take the dtype of the first tensor.

    Returns:
        The result; of an op with several a tuple, which unpacks as a Tensor does.

    Raises:
        InvalidArgumentError: The op does not take such inputs.
        TypeError: A number that the tensor's dtype cannot hold; a ragged tensor, if the op does not take any.
    """
    try:
        frame = _frame(2)  # mostly the program's: between it and this one is TensorFlow's function for the op
    except ValueError:  # called from the outermost frame
        frame = _frame(1)
    code = frame.f_code
    where = (code, frame.f_lasti) if code is latest_code[0] else new_call_site(frame)
    owner = current()
    canonical = op.attrs(attrs) if attrs or op.schema.attrs else NO_ATTRS
    inputs = [arg.recorded if arg.__class__ is EagerTensor and arg.session is owner else None for arg in args]
    if None in inputs:
        for arg in args:
            if isinstance(arg, Composite):
                composite: Any = arg.applied(op, args, attrs)
                if composite is not None:
                    return composite  # type: ignore[no-any-return]  # as if it were a tensor
        inputs = operands(op, args)
        if owner.numbers:
            return took(op, inputs, canonical, where)
    result = owner.recorder().apply(op, inputs, canonical, where)
    if result.__class__ is tuple:
        return tuple([EagerTensor(each, owner) for each in result])  # type: ignore[return-value]  # as documented
    return EagerTensor(result, owner)


_frame: Final = sys._getframe


def took(op: Op, inputs: Sequence[Any], attrs: Attrs, where: Where) -> Tensor:
    """Runs `op`, and notes whether a Python number among the inputs is a value that the program has read before."""
    owner = current()
    recorder = owner.recorder()
    result = recorder.apply(op, inputs, attrs, where)
    if result.__class__ is tuple:
        for each in result:
            recorder.provenance.note_numbers(inputs, each.uid)
        return tuple([EagerTensor(each, owner) for each in result])  # type: ignore[return-value]  # as documented
    recorder.provenance.note_numbers(inputs, result.uid)
    return EagerTensor(result, owner)


def operands(op: Op, args: Sequence[Any]) -> list[Any]:
    """Returns the inputs of a call as recorded values; other values take the dtype of the tensors among them."""
    inputs: list[Any] = [None] * len(args)
    for i, arg in enumerate(args):
        if isinstance(arg, TensorLike):
            inputs[i] = arg.operand()
        elif isinstance(arg, IndexedSlices):
            inputs[i] = as_tensor(arg).operand()
    for i, arg in enumerate(args):
        if inputs[i] is None:
            group = [j for j in range(len(args)) if op.variadic or _alike(op, i, j)]
            dtype = next((inputs[j].spec.dtype for j in group if inputs[j] is not None), None)
            if Trait.TRUTHS in op.traits:
                dtype = BOOL
            elif dtype is None and i in op.integers and holds_nothing(arg):
                dtype = _INT32  # an empty list has no numbers that would decide the dtype
            inputs[i] = operand(op, arg, dtype, alone=Trait.CONVERTS_APART in op.traits)
    return inputs


def _alike(op: Op, i: int, j: int) -> bool:
    return max(i, j) < len(op.like) and op.like[i] == op.like[j]


def operand(op: Op, arg: Any, dtype: Any, *, alone: bool = False) -> Any:
    """Returns a value that is no tensor as an op's input.

    Args:
        op: The op.
        arg: A number, list or array.
        dtype: The dtype of the op's tensors, which it takes; None: its own.
        alone: Whether a value that does not fit that dtype keeps its own, so that the op refuses the pair.

    Raises:
        TypeError: It does not fit.
    """
    if isinstance(arg, list | tuple) and holds_tensors(arg):
        return _stacked(arg, None).operand()
    if dtype is None:
        return constant(arg).operand()
    if arg.__class__ is int and dtype in INTEGER and not fits(arg, dtype):
        arg = wrapped(arg, dtype)
    kind = arg.__class__
    if op.weak and kind in _NUMBERS and (dtype in DIFFERENTIABLE or (kind is int and dtype in INTEGER)):
        return Literal(arg)
    try:
        return constant(arg, dtypes.as_dtype(dtype)).operand()
    except TypeError:
        if not alone:
            raise
        return constant(arg).operand()


def tensor_or_ragged(value: Any, dtype_hint: Any = None) -> Any:
    """Returns a ragged tensor unchanged, anything else as a tensor."""
    if isinstance(value, RaggedValue):
        return value
    return convert_to_tensor(value) if isinstance(value, TensorLike) else convert_to_tensor(value, None, dtype_hint)
