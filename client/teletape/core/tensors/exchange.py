"""Values for other libraries: DLPack capsules."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from teletape_engine.arrays import HostArray
from teletape_engine.errors import InvalidArgumentError

CPU: Final = (1, 0)  #: The device of exported values: DLPack's number of the kind, and the device.


def dlpack_of(values: Any, **options: Any) -> Any:
    """Returns the capsule of a host array or NumPy scalar.

    Raises:
        InvalidArgumentError: DLPack has no such dtype, or NumPy's part of it.
    """
    array: HostArray = np.array(values)  # a writable copy: old consumers refuse a read-only capsule
    try:
        return array.__dlpack__(**options)
    except (BufferError, TypeError) as error:
        raise InvalidArgumentError(f"a tensor of {array.dtype.name} has no DLPack form here: {error}") from None
