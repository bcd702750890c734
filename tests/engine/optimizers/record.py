"""Records what Keras' optimizers do: `KERAS_BACKEND=jax JAX_ENABLE_X64=1 python tests/engine/optimizers/record.py`."""

import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
from cases import CASES, DTYPES, GRADIENTS, VARIABLES

KERAS = {
    "sgd": keras.optimizers.SGD,
    "adam": keras.optimizers.Adam,
    "adamw": keras.optimizers.AdamW,
    "adamax": keras.optimizers.Adamax,
    "rmsprop": keras.optimizers.RMSprop,
    "lion": keras.optimizers.Lion,
    "adagrad": keras.optimizers.Adagrad,
    "adadelta": keras.optimizers.Adadelta,
}


def recorded(name: str, settings: dict[str, Any], dtype: str) -> list[list[Any]]:
    """The variables after each step."""
    keras.config.set_floatx(dtype)
    variables = [keras.Variable(value.astype(dtype), dtype=dtype) for value in VARIABLES]
    optimizer = KERAS[name](**settings)
    optimizer.build(variables)
    steps = []
    for gradients in GRADIENTS:
        optimizer.apply([keras.ops.convert_to_tensor(gradient.astype(dtype)) for gradient in gradients], variables)
        steps.append([np.asarray(variable.value).astype("float64").tolist() for variable in variables])
    return steps


if __name__ == "__main__":
    results = {case: {dtype: recorded(*CASES[case], dtype) for dtype in DTYPES} for case in CASES}
    answers = {"keras": keras.__version__, "results": results}
    text = json.dumps(answers, indent=None, separators=(",", ":")).replace('},"', '},\n"')
    Path(__file__).with_name("results.json").write_text(text + "\n", encoding="utf-8")
