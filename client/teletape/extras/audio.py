"""`tf.audio`: WAV files with 16 bits a sample, read and written by Python's own library."""

from __future__ import annotations

import io
import wave
from typing import Any, NamedTuple

import numpy as np

from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.errors import InvalidArgumentError
from teletape.core.tensors.tensor import Tensor
from teletape.tf.files.host import array_of, bytes_of


class DecodeWav(NamedTuple):
    """Samples from -1 to 1, [samples, channels], and the number of samples a second."""

    audio: Tensor
    sample_rate: Tensor


def decode_wav(
    contents: Any, desired_channels: int = -1, desired_samples: int = -1, name: str | None = None
) -> DecodeWav:
    """Decodes a WAV file of 16 bits a sample.

    Args:
        contents: A string.
        desired_channels: The number of channels, cut, or filled with copies of the last one; -1: those of the file.
        desired_samples: The number of samples, cut, or filled with zeros; -1: those of the file.
        name: Without effect.

    Raises:
        InvalidArgumentError: No such file.

    Example:
        tf.audio.decode_wav(tf.audio.encode_wav([[0.0], [0.5]], 8000))
    """
    try:
        with wave.open(io.BytesIO(bytes_of(contents, "contents"))) as file:
            width, channels, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            frames = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise InvalidArgumentError(f"the string is no WAV file: {error}") from None
    if width != 2:
        raise InvalidArgumentError(f"Can only read 16-bit WAV files, but received {8 * width}")
    samples = np.frombuffer(frames, "<i2").reshape(-1, channels).astype(np.float32) / np.float32(32768)
    if desired_channels >= 0:
        last = np.repeat(samples[:, -1:], max(desired_channels - channels, 0), axis=1)
        samples = np.concatenate([samples[:, :desired_channels], last], axis=1)
    if desired_samples >= 0:
        silence = np.zeros((max(desired_samples - len(samples), 0), samples.shape[1]), np.float32)
        samples = np.concatenate([samples[:desired_samples], silence])
    return DecodeWav(convert_to_tensor(samples), convert_to_tensor(np.int32(rate)))


def encode_wav(audio: Any, sample_rate: Any, name: str | None = None) -> Tensor:
    """Encodes samples from -1 to 1, [samples, channels], as a WAV file of 16 bits a sample.

    Raises:
        InvalidArgumentError: Another rank.

    Example:
        tf.audio.encode_wav([[0.0], [0.5]], sample_rate=8000)
    """
    samples, rate = array_of(convert_to_tensor(audio)), array_of(convert_to_tensor(sample_rate))
    if samples.ndim != 2:
        raise InvalidArgumentError(f"audio must be 2-dimensional but got shape {list(samples.shape)}")
    contents = io.BytesIO()
    with wave.open(contents, "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(int(rate))
        levels = np.clip(np.round(samples * np.float32(32768)), -32768, 32767)
        file.writeframes(levels.astype("<i2").tobytes())
    return convert_to_tensor(contents.getvalue())
