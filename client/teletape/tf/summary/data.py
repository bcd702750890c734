"""The kinds of summaries: numbers, images, histograms, texts, sounds and tensors."""

from __future__ import annotations

import io
import wave
from typing import Any, Final

import numpy as np

from teletape._generated.shapes.cast import cast
from teletape.core.calls.dispatch import constant, convert_to_tensor
from teletape.core.errors import InvalidArgumentError
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.core.variables import name_scope
from teletape.tf.summary import events
from teletape.tf.summary.conditions import condition_holds, step_or_default
from teletape.tf.summary.writer import Encode, add_to_default, default_writer
from teletape_engine.arrays import HostArray


def scalar(name: str, data: Any, step: Any = None, description: str | None = None) -> Tensor:
    """Writes a number.

    Args:
        name: Its tag; scopes of `tf.name_scope` come before it.
        data: A real number, of rank 0; written as float32.
        step: An integer, a tensor or a variable; None: the default step.
        description: Shown by TensorBoard.

    Returns:
        Whether a writer took it: False without a default writer, or if `record_if` says so.

    Raises:
        ValueError: There is a writer and no step.
        InvalidArgumentError: The data is not of rank 0.
    """

    def encode(array: HostArray, tag: str) -> Any:
        return events.module("summary").scalar(tag, float(array), tag, description or "")

    return _summary(name, data, step, encode, rank=0, dtype=dtypes.float32)


def image(name: str, data: Any, step: Any = None, max_outputs: Any = 3, description: str | None = None) -> Tensor:
    """Writes images.

    Args:
        name: Their tag; each image has its number after it.
        data: [k, height, width, channels]; uint8, or floating numbers from 0 to 1. 1 to 4 channels.
        step: See `scalar`.
        max_outputs: The largest number of images.
        description: Without effect.

    Returns:
        See `scalar`.

    Raises:
        ValueError, InvalidArgumentError: See `scalar`; the data is not of rank 4.
    """
    most = int(max_outputs)

    def encode(array: HostArray, tag: str) -> list[Any]:
        is_whole = array.dtype == np.uint8
        pixels: HostArray = array if is_whole else (np.clip(array, 0, 1) * _BELOW_256).astype(np.uint8)
        tags = [tag] if len(pixels) == 1 else [f"{tag}/{number}" for number in range(len(pixels))]
        return [
            events.module("summary").image(own_tag, _with_color(picture), dataformats="HWC")
            for own_tag, picture in list(zip(tags, pixels, strict=True))[:most]
        ]

    return _summary(name, data, step, encode, rank=4)


def histogram(name: str, data: Any, step: Any = None, buckets: Any = None, description: str | None = None) -> Tensor:
    """Writes a histogram of values.

    Args:
        name: Its tag.
        data: Numbers of any shape.
        step: See `scalar`.
        buckets: The number of intervals; None: 30.
        description: Without effect.

    Returns:
        See `scalar`.

    Raises:
        ValueError: See `scalar`.
    """
    count = 30 if buckets is None else int(buckets)

    def encode(array: HostArray, tag: str) -> Any:
        values = np.asarray(array, np.float64).reshape(-1)
        return events.module("summary").histogram(tag, values if values.size else np.zeros(1), count)

    return _summary(name, data, step, encode)


def text(name: str, data: Any, step: Any = None, description: str | None = None) -> Tensor:
    """Writes texts, which TensorBoard shows as Markdown.

    Args:
        name: Its tag.
        data: A string, or strings of any shape.
        step: See `scalar`.
        description: Without effect.

    Returns:
        See `scalar`.

    Raises:
        ValueError: See `scalar`.
    """

    def encode(array: HostArray, tag: str) -> Any:
        lines = [line.decode() if isinstance(line, bytes) else str(line) for line in np.ravel(array)]
        return events.module("summary").text(tag, "\n\n".join(lines))

    return _summary(name, data, step, encode)


def audio(
    name: str,
    data: Any,
    sample_rate: Any,
    step: Any = None,
    max_outputs: Any = 3,
    encoding: str | None = None,
    description: str | None = None,
) -> Tensor:
    """Writes sounds.

    Args:
        name: Their tag; each sound has its number after it.
        data: [k, samples, channels], floating numbers from -1 to 1.
        sample_rate: Samples a second.
        step: See `scalar`.
        max_outputs: The largest number of sounds.
        encoding: "wav", or None for the same.
        description: Without effect.

    Returns:
        See `scalar`.

    Raises:
        ValueError, InvalidArgumentError: See `scalar`; another encoding; the data is not of rank 3.
    """
    if encoding not in (None, "wav"):
        raise ValueError(f"Unknown encoding: {encoding!r}; sounds are written as 'wav'")
    rate, most = int(sample_rate), int(max_outputs)

    def encode(array: HostArray, tag: str) -> list[Any]:
        tags = [tag] if len(array) == 1 else [f"{tag}/{number}" for number in range(len(array))]
        return [_sound(own_tag, sound, rate) for own_tag, sound in list(zip(tags, array, strict=True))[:most]]

    return _summary(name, data, step, encode, rank=3)


def write(tag: str, tensor: Any, step: Any = None, metadata: Any = None, name: str | None = None) -> Tensor:
    """Writes a tensor for a plugin of TensorBoard's.

    Args:
        tag: Its tag, without the names of scopes.
        tensor: Numbers or strings; a function is called if there is a writer.
        step: See `scalar`.
        metadata: A `tf.compat.v1.SummaryMetadata`, which names the plugin.
        name: Without effect.

    Returns:
        See `scalar`.

    Raises:
        ValueError: See `scalar`.
    """

    def encode(array: HostArray, tag: str) -> Any:
        value = events.module("proto.summary_pb2").Summary.Value(tag=tag, tensor=_tensor(array))
        if metadata is not None:
            value.metadata.ParseFromString(metadata.SerializeToString())
        return value

    if callable(tensor) and default_writer() is not None:
        tensor = tensor()
    return _summary(tag, tensor, step, encode, scoped=False)


def _summary(
    name: str, data: Any, step: Any, encode: Any, rank: int | None = None, dtype: Any = None, scoped: bool = True
) -> Tensor:
    """Adds a summary to the default writer, if there is one and the condition holds."""
    if default_writer() is None:
        return constant(False)
    step = step_or_default(step)
    if not condition_holds():
        return constant(False)
    tensor = convert_to_tensor(data)
    if rank is not None and tensor.ndim != rank:
        raise InvalidArgumentError(
            f"summary {name!r}: the data has the shape {tensor.shape}; its rank must be {rank}, found {tensor.ndim}"
        )
    if dtype is not None:
        tensor = cast(tensor, dtype)
    tag = name_scope.scoped(name) if scoped else name
    return constant(add_to_default(_values(encode, tag), tensor, step))


def _values(encode: Any, tag: str) -> Encode:
    def values(array: HostArray) -> list[Any]:
        encoded = encode(array, tag)
        return [
            value
            for entry in (encoded if isinstance(encoded, list) else [encoded])
            for value in (entry.value if entry.DESCRIPTOR.name == "Summary" else [entry])
        ]

    return values


def _with_color(picture: HostArray) -> HostArray:
    """Returns a picture with three channels, or four; gray ones get three equal channels."""
    channels = picture.shape[-1]
    if channels == 2:
        picture = np.concatenate([picture[..., :1]] * 3 + [picture[..., 1:]], axis=-1)
    return np.repeat(picture, 3, axis=-1) if channels == 1 else picture


def _sound(tag: str, samples: HostArray, rate: int) -> Any:
    """Returns a sound as a WAV file of 16 bits."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(samples.shape[1])
        writer.setsampwidth(2)
        writer.setframerate(rate)
        writer.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
    protocol = events.module("proto.summary_pb2").Summary
    audio_value = protocol.Audio(
        sample_rate=rate,
        num_channels=samples.shape[1],
        length_frames=len(samples),
        encoded_audio_string=file.getvalue(),
        content_type="audio/wav",
    )
    return protocol.Value(tag=tag, audio=audio_value)


_BELOW_256: Final = np.nextafter(256.0, 0.0)

#: DataType of TensorFlow's tensor.proto by dtype; strings are 7.
_TYPES: Final = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "int64": 9, "bool": 10}


def _tensor(array: HostArray) -> Any:
    protocol = events.module("proto.tensor_pb2"), events.module("proto.tensor_shape_pb2")
    shape = protocol[1].TensorShapeProto(dim=[protocol[1].TensorShapeProto.Dim(size=size) for size in array.shape])
    if array.dtype.kind in "OSU":
        strings = [text if isinstance(text, bytes) else str(text).encode() for text in np.ravel(array)]
        return protocol[0].TensorProto(dtype=7, tensor_shape=shape, string_val=strings)
    if array.dtype.name not in _TYPES:
        raise InvalidArgumentError(f"a summary does not take {array.dtype.name}: cast it to float32 first")
    return protocol[0].TensorProto(dtype=_TYPES[array.dtype.name], tensor_shape=shape, tensor_content=array.tobytes())
