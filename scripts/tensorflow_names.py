"""Writes tensorflow_names.json: TensorFlow's public names with their arguments and members. It runs under TensorFlow.

    ~/tensorflow/bin/python scripts/tensorflow_names.py

tests/conformance/record.py says how that environment is made. `raw_ops`, `keras` and `compat` are left out but for the
names of `compat.v1`: the first are the engine's ops, the second is Keras itself, the third are older names.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from types import ModuleType
from typing import Any

FILE = Path(__file__).with_suffix(".json")
LEFT_OUT = {"compat", "initializers", "keras", "losses", "metrics", "optimizers", "raw_ops"}


def parameters(subject: Any) -> list[str] | None:
    """The names of a function's arguments; None if it does not say them."""
    try:
        listed = inspect.signature(subject).parameters.values()
    except (TypeError, ValueError):
        return None
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [stars.get(parameter.kind, "") + parameter.name for parameter in listed]


def described(value: Any) -> dict[str, Any]:
    """What a public name is."""
    if inspect.isclass(value):
        members = [name for name in dir(value) if not name.startswith("_")]
        return {"class": (parameters(value.__init__) or ["self"])[1:], "members": members}
    return {"function": parameters(value)} if callable(value) else {"value": type(value).__name__}


def walk(module: ModuleType, path: str, names: dict[str, Any]) -> None:
    """Adds the names of a public module and of those inside it."""
    for name in sorted(dir(module)):
        value = getattr(module, name)
        if name.startswith("_") or (not path and name in LEFT_OUT):
            continue
        if not isinstance(value, ModuleType):
            names[path + name] = described(value)
        elif "/_api/v2/" in (getattr(value, "__file__", None) or ""):
            walk(value, f"{path}{name}.", names)


def main() -> None:
    """Writes the file."""
    import tensorflow as tf  # type: ignore[import-not-found]  # in an environment of its own

    names: dict[str, Any] = {}
    walk(tf, "", names)
    older = [name for name in dir(tf.compat.v1) if not name.startswith("_")]
    lines = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in sorted(names.items())]
    version, v1 = json.dumps(tf.__version__), json.dumps(older)
    text = ",\n".join(lines)
    FILE.write_text(f'{{"version": {version},\n"v1": {v1},\n"names": {{\n{text}\n}}}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
