"""TensorFlow's functions of teletape_engine.ops.nn.gelu.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from typing import Any

from teletape.core.calls import arguments as to
from teletape.core.calls import checks
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_GELU = ops.gelu


def gelu(features: to.TensorInput, approximate: bool = False, name: str | None = None) -> Tensor:
    """x·Φ(x), Φ the normal distribution function, elementwise; by tanh if `approximate` (Hendrycks, Gimpel 2016)."""
    try:
        features = to.tensor(features)
        checks.floating_features(features)
        attrs: dict[str, Any] = {}
        if approximate is not False:
            attrs["approximate"] = to.flag(approximate)
        return call(_GELU, (features,), **attrs)
    except BaseException as error:
        report(error)
        raise
