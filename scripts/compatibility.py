"""Writes docs/compatibility.md: what Teletape has of TensorFlow's public names, compared argument by argument.

tensorflow_names.json has TensorFlow's names, which scripts/tensorflow_names.py took from it. With --check it says
whether the page is current.
"""

import functools
import inspect
import json
import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))  # `python -P` leaves it out
from public_surface import LAZY, names

import teletape as tf
from teletape.core.program.remedies import remedy

PAGE = Path(__file__).resolve().parents[1] / "docs" / "compatibility.md"
TENSORFLOW = Path(__file__).with_name("tensorflow_names.json")
HEAD = """\
# Compatibility: which of TensorFlow's names exist

Written by `make pages`: every public name of TensorFlow {version}, compared with the SDK's; a test holds the page
current and checks it. `tf.keras`, `tf.losses`, `tf.metrics`, `tf.optimizers` and `tf.initializers` are Keras 3 itself
([keras.md](keras.md)), and are not listed; `tf.raw_ops` is in the [reference of the ops](reference.md).

* **Supported**: the name exists with TensorFlow's arguments, under their names and in their order; a class has
  TensorFlow's public methods and properties but those of its serialization. Arguments that steer only TensorFlow's
  graphs and devices are accepted and have no effect. [conformance.md](conformance.md) says how the behaviour is tested,
  and where it differs on purpose.
* **Partly**: the name exists, and what follows it is missing or different.
* **Not**: the reason, or what to use instead, is in brackets; the error of the name says it too.
* **Not yet**: Teletape lacks it, and has nothing in its place. The error of the name says the nearest names.

{supported} of {all} names are supported, {partly} partly. Teletape's own names are [at the end](#teletapes-own-names).

"""
#: Names that exist and do less than TensorFlow's; what they do is not seen in their arguments.
NOTES = {
    "config.experimental_connect_to_cluster": "refuses: tf.connect",
    "config.experimental_connect_to_host": "refuses: tf.connect",
    "config.list_logical_devices": "one device, the CPU, wherever the session computes",
    "config.list_physical_devices": "one device, the CPU, wherever the session computes",
    "config.set_logical_device_configuration": "one logical device",
    "distribute.DistributedDataset": "has no instances: there is one replica",
    "distribute.DistributedIterator": "has no instances: there is one replica",
    "distribute.DistributedValues": "has no instances: there is one replica",
    "distribute.MirroredStrategy": "one replica",
    "distribute.MultiWorkerMirroredStrategy": "one replica",
    "distribute.ParameterServerStrategy": "refuses: it needs several hosts",
    "distribute.TPUStrategy": "refuses: there are no TPUs",
    "distribute.cluster_resolver.TPUClusterResolver": "finds no TPU: raises ValueError",
    "distribute.experimental.CentralStorageStrategy": "one replica",
    "distribute.experimental.MultiWorkerMirroredStrategy": "one replica",
    "distribute.experimental.ParameterServerStrategy": "refuses: it needs several hosts",
    "distribute.experimental.TPUStrategy": "refuses: there are no TPUs",
    "profiler.experimental.Trace": "without effect: tf.session().profile()",
    "saved_model.load": "refuses: tf.train.Checkpoint, or tf.keras.models.load_model",
    "saved_model.save": "refuses: tf.train.Checkpoint, or model.save of Keras",
    "random.stateless_parameterized_truncated_normal": "other numbers, of the same distribution",
}
#: Members of classes that are Python's (of tuples and integers) or serve TensorFlow's own serialization.
IGNORED = frozenset(
    "as_integer_ratio as_proto bit_length cast conjugate count denominator experimental_as_proto "
    "experimental_from_proto experimental_type_proto flatten from_bytes from_proto from_tensors imag index numerator "
    "placeholder_value real to_bytes to_proto to_tensors".split()
)


#: An instance of a class whose members are seen on instances alone, if the class cannot be called without arguments.
EXAMPLES: dict[str, Callable[[], Any]] = {
    "Tensor": lambda: tf.constant(0.0),
    "data.experimental.RandomDataset": tf.data.Dataset.random,
    "experimental.numpy.iinfo": lambda: tf.experimental.numpy.iinfo("int8"),
    "experimental.numpy.ndarray": lambda: tf.constant(0.0),
    "io.FixedLenFeature": lambda: tf.io.FixedLenFeature([], tf.float32),
    "io.FixedLenSequenceFeature": lambda: tf.io.FixedLenSequenceFeature([], tf.float32),
    "io.VarLenFeature": lambda: tf.io.VarLenFeature(tf.float32),
    "name_scope": lambda: tf.name_scope("a"),
}
#: Modules whose classes can be called without arguments.
CALLABLE = ("data.", "io.", "train.")


class Standing(NamedTuple):
    """Whether a name is "supported", "partly" or "not", and what is missing or to be used instead."""

    status: str
    text: str = ""


@functools.cache
def tensorflow() -> dict[str, Any]:
    """The version, the names, and the names of `compat.v1` of TensorFlow."""
    listed: dict[str, Any] = json.loads(TENSORFLOW.read_text(encoding="utf-8"))
    return listed


def at(path: str) -> Any:
    """The value of a dotted name.

    Raises:
        AttributeError: There is none.
    """
    value: Any = tf
    for part in path.split("."):
        value = getattr(value, part)
    return value


def arguments(subject: Any) -> list[str] | None:
    """The names of the arguments that a function takes; None if it does not say them."""
    try:
        listed = inspect.signature(subject).parameters.values()
    except (TypeError, ValueError):
        return None
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [stars.get(parameter.kind, "") + parameter.name for parameter in listed]


def compared(theirs: list[str] | None, ours: list[str] | None) -> list[str]:
    """What differs between the arguments of TensorFlow's function and ours."""
    if theirs is None or ours is None:
        return []
    wanted = [name for name in theirs if not name.startswith("*")]
    if not wanted or any(name.startswith("**") for name in ours):
        return []
    missing = [name for name in wanted if name not in ours]
    differences = [f"without {', '.join(f'`{name}`' for name in missing)}"] if missing else []
    present = [name for name in wanted if name in ours]
    if not missing and [name for name in ours if name in present] != present:
        differences.append(f"arguments in another order: {', '.join(f'`{name}`' for name in ours)}")
    return differences


def example(name: str, value: Any) -> Any:
    """Returns an instance of a class if one can be made, else None."""
    if name in EXAMPLES:
        return EXAMPLES[name]()
    if inspect.isclass(value) and issubclass(value, BaseException):
        return value("a message")
    if not name.startswith(CALLABLE):
        return None
    try:
        return value()
    except (TypeError, ValueError):
        return None


def standing(name: str) -> Standing:
    """Returns the standing of a name of TensorFlow's."""
    try:
        value = at(name)
    except (AttributeError, NotImplementedError):
        return Standing("not", remedy(name) or "")
    entry = tensorflow()["names"][name]
    differences = [NOTES[name]] if name in NOTES else []
    if "function" in entry and not differences:
        if callable(value):
            differences += compared(entry["function"], arguments(value))
        else:
            differences.append("is no function here")
    elif "class" in entry:
        if inspect.isclass(value) and not issubclass(value, BaseException):
            differences += compared(entry["class"], (arguments(value.__init__) or ["self"])[1:])
        known = {*dir(value), *dir(example(name, value)), *IGNORED}
        missing = [member for member in entry["members"] if member not in known]
        if missing:
            differences.append(f"without {', '.join(f'`.{member}`' for member in missing)}")
    return Standing("partly", "; ".join(differences)) if differences else Standing("supported")


@functools.cache
def standings() -> dict[str, Standing]:
    """Every name of TensorFlow's and its standing."""
    return {name: standing(name) for name in sorted(tensorflow()["names"])}


def own() -> list[str]:
    """Public names that TensorFlow does not have."""
    listed = set(names())
    theirs = set(tensorflow()["names"]) | {f"compat.v1.{name}" for name in tensorflow()["v1"]}
    modules = {path.rpartition(".")[0] for path in theirs}
    return sorted(
        name
        for name in listed - theirs
        if not name.startswith(("raw_ops.", "compat.")) and name not in modules and not isinstance(at(name), ModuleType)
    )


def page() -> str:
    """The whole page."""
    by_module: dict[str, dict[str, Standing]] = {}
    for name, entry in standings().items():
        module, _, member = name.rpartition(".")
        by_module.setdefault(module, {})[member] = entry
    counts = {
        status: sum(entry.status == status for entry in standings().values()) for status in ("supported", "partly")
    }
    parts = [HEAD.format(version=tensorflow()["version"], all=len(standings()), **counts)]
    parts += [section(module, entries) for module, entries in sorted(by_module.items())]
    return "".join([*parts, older(), last()]).rstrip() + "\n"


def section(module: str, entries: dict[str, Standing]) -> str:
    """The names of one module."""
    heading = f"tf.{module}".rstrip(".")
    members: dict[str, list[str]] = {"supported": [], "partly": [], "not": []}
    instead: dict[str, list[str]] = {}
    for member, entry in entries.items():
        members[entry.status].append(member)
        if entry.status == "not":
            instead.setdefault(entry.text, []).append(member)
    parts = [f"## {heading}\n\n"]
    if members["supported"]:
        parts.append(wrapped(code(members["supported"])) + "\n\n")
    if members["partly"]:
        lines = (bullet(f"`{member}`: {entries[member].text}") for member in members["partly"])
        parts.append("Partly:\n\n" + "".join(lines) + "\n")
    for text, missing in sorted(instead.items()):
        parts.append(wrapped([f"Not ({text}):" if text else "Not yet:", *code(missing)]) + "\n\n")
    return "".join(parts)


def older() -> str:
    """The names of `tf.compat.v1`."""
    present = [name for name in tensorflow()["v1"] if exists(f"compat.v1.{name}")]
    absent = [name for name in tensorflow()["v1"] if name not in present]
    known = [f"`{name}` ({text})" for name in absent if (text := remedy(f"compat.v1.{name}")) and not shared(name)]
    return (
        f"## tf.compat.v1\n\nPrograms of TensorFlow 1 need another form first: {len(present)} of "
        f"{len(tensorflow()['v1'])} names exist, those that programs of TensorFlow 2 use.\n\n"
        f"{wrapped(code(present))}\n\n{wrapped(['Not, with what to use instead:', ', '.join(known)])}\n\n"
    )


def shared(name: str) -> bool:
    """Whether a name of `tf.compat.v1` is a name of TensorFlow 2 too."""
    names_of_two = tensorflow()["names"]
    return name in names_of_two or any(known.startswith(f"{name}.") for known in names_of_two)


def exists(path: str) -> bool:
    """Whether a dotted name has a value."""
    try:
        at(path)
    except (AttributeError, ModuleNotFoundError):
        return False
    return True


def last() -> str:
    """Teletape's own names, and the modules that are Keras's."""
    keras = ", ".join(f"`tf.{name}`" for name, module in sorted(LAZY.items()) if module.startswith("teletape.keras"))
    return (
        f"## Teletape's own names\n\nTensorFlow has no such names. Keras's own modules:\n{keras}.\n\n"
        f"{wrapped(code(own()))}\n"
    )


def code(words: Iterable[str]) -> list[str]:
    """Words as code."""
    return [f"`{word}`" for word in words]


def bullet(text: str) -> str:
    """A line of a list."""
    return (
        textwrap.fill(f"* {text}", 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False) + "\n"
    )


def wrapped(words: list[str]) -> str:
    """The words in lines of 120 columns."""
    return textwrap.fill(" ".join(words), 120, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(
            0 if PAGE.read_text(encoding="utf-8") == page() else "docs/compatibility.md is not current: make pages"
        )
    PAGE.write_text(page(), encoding="utf-8")
