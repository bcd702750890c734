"""Known numbers for the weights of Keras models: initializers draw other numbers on each backend."""

from __future__ import annotations

from typing import Any


def set_weights(np: Any, model: Any, seed: int = 0, scale: float = 0.3) -> Any:
    """Gives each weight of a built layer or model its own numbers, variances positive ones; returns the model."""
    random = np.random.default_rng(seed)
    arrays = []
    for variable, array in zip(model.weights, model.get_weights(), strict=True):
        if array.dtype.kind == "f":
            drawn = random.normal(0.0, scale, array.shape)
            positive = "variance" in variable.path or "gamma" in variable.path
            array = (np.abs(drawn) + 0.5 if positive else drawn).astype(array.dtype)
        arrays.append(array)
    model.set_weights(arrays)
    return model
