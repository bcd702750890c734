"""What is public is documented, and every name of TensorFlow's has one meaning."""

from __future__ import annotations

import importlib.util
import inspect
import pickle
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import teletape as tf
from programs import load_script
from teletape.core.program.remedies import REMEDIES
from teletape.core.program.tracebacks import unwrapped
from teletape.extras import raw_ops as raw
from teletape_engine.catalogue.op import CATALOGUE

surface = load_script("public_surface")
SURFACE = surface.surface()
DERIVED = surface.derived()


def at(path: str) -> Any:
    value: Any = tf
    for part in path.split(".") if path else ():
        value = getattr(value, part)
    return value


def public() -> dict[str, Any]:
    """Everything public, by its dotted name; modules are left out."""
    return dict(surface.names())


def undocumented(name: str, subject: Any) -> list[str]:
    """The name, and those of its members if it is a class, that have no documentation."""
    names = [] if inspect.getdoc(subject) else [name]
    if inspect.isclass(subject) and not issubclass(subject, Exception):
        names += [
            f"{name}.{member}"
            for member, value in vars(subject).items()
            if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
            if not inspect.getdoc(getattr(subject, member) if inspect.isfunction(value) else value)
        ]
    return names


def test_what_is_public_is_documented() -> None:
    """One test of all names: two thousand tests took most of their time to be collected and reported."""
    subjects = {name: subject for name, subject in public().items() if callable(subject)}
    assert len(subjects) > 1000
    assert not [missing for name, subject in sorted(subjects.items()) for missing in undocumented(name, subject)]


def test_every_tensorflow_name_of_the_catalogue_resolves() -> None:
    names = [name for op in CATALOGUE.values() for name in op.tf]
    assert names
    assert not [name for name in names if unwrapped(at(name)) is not unwrapped(SURFACE[name])]


def test_no_name_is_claimed_by_two_ops() -> None:
    claims = Counter(name for op in CATALOGUE.values() for name in op.tf)
    assert not {name: count for name, count in claims.items() if count > 1}


def test_what_is_written_by_hand_is_not_derived_too() -> None:
    assert not surface.by_hand().keys() & DERIVED.keys()
    assert surface.by_hand() | DERIVED == SURFACE
    for name, function in SURFACE.items():
        assert unwrapped(at(name)) is unwrapped(function), f"tf.{name} is not the function that was written for it"


def test_most_functions_are_derived_from_the_catalogue() -> None:
    assert len(DERIVED) >= 200
    reasons = {
        name: entry.by_hand
        for op in CATALOGUE.values()
        for entry in op.functions
        if entry.by_hand
        for name in entry.names
    }
    assert reasons.keys() <= surface.by_hand().keys()
    for name, written in surface.by_hand().items():
        if written.__module__.startswith("teletape.tf.ops."):
            texts = (inspect.getdoc(written), inspect.getdoc(sys.modules[written.__module__]))
            assert name in reasons or any("By hand:" in (text or "") for text in texts), f"tf.{name}: why by hand?"


def test_every_raw_op_is_called_by_a_program_that_tensorflow_ran() -> None:
    program = Path("tests/conformance/programs/ops_raw.py").read_text()
    words = set(re.findall(r"\w+", program))
    assert sorted(raw.NAMES - words) == []


def test_the_namespace_lists_what_it_offers() -> None:
    assert len(set(tf.__all__)) == len(tf.__all__)
    assert all(hasattr(tf, name) for name in tf.__all__)


PATHS = sorted(surface.by_module())


@pytest.mark.parametrize("path", PATHS)
def test_a_public_module_lists_public_names_alone(path: str) -> None:
    module = at(path)
    assert dir(module) == sorted([*module.__all__, *(() if path else surface.LAZY)])
    assert not [name for name in dir(module) if name.startswith("_")]
    for name in dir(module):
        value = getattr(module, name)
        if isinstance(value, ModuleType) and (path or name not in surface.LAZY):
            assert f"{path}.{name}".lstrip(".") in PATHS, f"tf.{path}.{name} is an internal module"


def test_internal_modules_are_not_listed() -> None:
    assert "ops" not in dir(tf)
    assert "tensors" not in dir(tf)
    paths = [path for path in PATHS if path != "raw_ops"]  # which has an op Any
    assert not {"Any", "np", "functools", "annotations"} & {name for path in paths for name in dir(at(path))}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("log", "tf.log is not in Teletape; the nearest name is tf.math.log"),
        ("reduce_summ", "tf.reduce_summ is not in Teletape; the nearest names are tf.reduce_sum, "),
        ("math.matmul", "tf.math.matmul is not in Teletape; the nearest name is tf.matmul"),
        ("strings.splt", "the nearest name is tf.strings.split. docs"),
        ("nn.reluu", "the nearest names are tf.nn.relu, tf.nn.relu6, tf.nn.crelu"),
        ("to_float", "tf.to_float is not in Teletape. Instead: tf.cast(x, tf.float32)"),
        ("contrib", "tf.contrib is not in Teletape. Instead: TensorFlow 2 has none either"),
        ("signal.ftt", "the nearest name is tf.signal.fft"),
        ("compat.v1.audio", "tf.compat.v1.audio is not in Teletape; the nearest name is tf.audio. docs"),
        ("compat.v1.matmull", "the nearest name is tf.matmul. docs"),
    ],
)
def test_a_missing_name_is_answered_with_the_nearest(path: str, text: str) -> None:
    with pytest.raises(AttributeError) as caught:
        at(path)
    assert text in str(caught.value)
    outer, _, name = path.rpartition(".")
    assert not hasattr(at(outer), name)


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("from teletape import matmull", "tf.matmull is not in Teletape; the nearest name is tf.matmul"),
        ("from teletape.nn import reluu", "tf.nn.reluu is not in Teletape; the nearest names are tf.nn.relu, "),
        ("from teletape.data import Datasett", "the nearest names are tf.data.Dataset, "),
        ("from teletape.compat.v1 import placeholder", "Instead: pass the value as an argument of a tf.function"),
        ("import teletape.lite", "tf.lite is not in Teletape. Instead: "),
        ("import teletape.linalg.eigg", "the nearest names are tf.linalg.eig, tf.linalg.eigh"),
        ("from teletape.keras.layers import Densee", "the nearest name is tf.keras.layers.Dense"),
        ("from teletape.keras import layerss", "the nearest names are tf.keras.layers, "),
        ("tf.keras.losses.Huberr", "the nearest names are tf.keras.losses.Huber, "),
    ],
)
def test_a_missing_name_that_is_imported_is_answered_with_the_nearest(statement: str, text: str) -> None:
    with pytest.raises((ImportError, AttributeError)) as caught:
        exec(statement, {"tf": tf})  # noqa: S102  # a statement of this file
    assert text in str(caught.value)
    assert str(caught.value).endswith(". docs/compatibility.md has every name")


def test_what_is_no_public_name_is_imported_as_ever() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'teletape\.tf\.ops\.foo'$"):
        importlib.import_module("teletape.tf.ops.foo")
    assert importlib.util.find_spec("teletape.tf.ops") is not None


@pytest.mark.parametrize(
    ("make", "attribute", "text"),
    [
        (lambda: tf.GradientTape(), "gradiant", "the nearest names are gradient, "),
        (lambda: tf.GradientTape(), "foo", "it has batch_jacobian, "),
        (lambda: tf.Variable(1.0), "assig", "the nearest names are assign, "),
        (lambda: tf.constant(1.0), "nump", "the nearest name is numpy"),
        (lambda: tf.constant(1.0).shape, "as_lis", "the nearest name is as_list"),
        (lambda: tf.float32, "nam", "the nearest name is name"),
        (lambda: tf.data.Dataset.range(3), "shufle", "the nearest name is shuffle"),
        (lambda: tf.random.Generator.from_seed(1), "unifrom", "the nearest name is uniform"),
        (lambda: tf.SparseTensor([[0]], [1.0], [1]), "indeces", "the nearest name is indices"),
        (lambda: tf.function(abs), "get_concrete", "the nearest name is get_concrete_function"),
        (lambda: tf.linalg.LinearOperatorIdentity(2), "matmull", "the nearest name is matmul"),
        (lambda: tf.session(), "expalin", "the nearest name is explain"),
    ],
)
def test_a_missing_attribute_is_answered_with_the_nearest(make: Callable[[], Any], attribute: str, text: str) -> None:
    value = make()
    with pytest.raises(AttributeError) as caught:
        getattr(value, attribute)
    assert f"object has no attribute {attribute!r}; {text}" in str(caught.value)
    assert str(caught.value).endswith(". docs/compatibility.md has every name")
    assert not hasattr(value, attribute)


def test_a_property_that_fails_says_why_itself() -> None:
    with pytest.raises(AttributeError) as caught:
        tf.constant(1.0).name  # noqa: B018  # a property
    assert str(caught.value) == "Tensor.name is undefined when eager execution is enabled."


def test_no_remedy_is_for_a_name_that_there_is() -> None:
    assert not REMEDIES.keys() & surface.names().keys()


def test_public_modules_can_be_imported_and_functions_pickled() -> None:
    import teletape.math
    from teletape.compat.v1 import cond
    from teletape.nn import relu

    assert sys.modules["teletape.math"] is tf.math is teletape.math
    assert relu is tf.nn.relu
    assert cond is tf.compat.v1.cond
    for function in (tf.math.tanh, tf.reduce_sum, tf.nn.conv2d):
        assert pickle.loads(pickle.dumps(function)) is function  # noqa: S301  # of this process


def test_a_program_without_a_server_loads_no_http() -> None:
    http = {"httpx", "teletape.core.network.http"}
    script = f"import sys, teletape as tf; tf.exp(1.0); print(*sorted({http} & {{*sys.modules}}))"
    loaded = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True).stdout
    assert loaded.split() == []


# ------------------------------------------------------------------------------------------------------- what is loaded
#: What a program that records does not need.
#: Parts of `tf` that recording does not need.
_ELSEWHERE = "autograph checkpoints control_flow data debugging files summary".split()


def loaded_by(statements: str) -> set[str]:
    """The modules with a file that a fresh process has after these statements."""
    script = (
        f"{statements}\nimport sys\nprint(*[name for name, m in sys.modules.items() if getattr(m, '__file__', None)])"
    )
    return {
        *subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True).stdout.split()
    }


def test_the_import_loads_a_table_of_names() -> None:
    loaded = loaded_by("import teletape as tf; tf.__all__; dir(tf.math)")
    own = {name for name in loaded if name.startswith("teletape")}
    assert own <= {
        "teletape",
        *(f"teletape.{name}" for name in ("names", "names.modules", "names.table", "core", "core.environment")),
        *(f"teletape.{name}" for name in ("tf", "tf.configuration", "tf.configuration.version")),
        *(f"teletape.{name}" for name in ("keras_mount", "keras_mount.finders")),
    }
    assert not {"numpy", "httpx", "keras"} & loaded


def test_recording_loads_what_it_needs() -> None:
    program = """
import teletape as tf
x = tf.Variable([1.0, 2.0])
with tf.GradientTape() as tape:
    y = tf.reduce_sum(x * x)
x.assign_sub(tape.gradient(y, x))
"""
    loaded = loaded_by(program)
    assert "teletape.core.derivatives.tape" in loaded
    assert not [name for name in loaded if name.startswith("teletape.extras.")]
    assert not [name for name in _ELSEWHERE if f"teletape.tf.{name}" in loaded]
    everything = loaded_by("import teletape as tf; [getattr(tf, name) for name in tf.__all__]")
    assert 3 * len({name for name in loaded if name.startswith("teletape.")}) < len(everything)


def test_a_module_that_is_imported_by_its_own_name_explains_missing_names_too() -> None:
    loaded_by(
        "import teletape.test\n"
        "try:\n"
        "    teletape.test.create_local_cluster\n"
        "except AttributeError as error:\n"
        "    assert 'tf.test.create_local_cluster is not in Teletape' in str(error), error\n"
        "else:\n"
        "    raise AssertionError"
    )


def test_a_public_name_stays_where_a_module_of_the_package_has_the_same() -> None:
    loaded = loaded_by(
        "import teletape as tf, teletape.core.sessions.current, teletape.extras.text.strings, types\n"
        "values = [getattr(tf, name) for name in tf.__all__]\n"
        "assert not [v for v in values if isinstance(v, types.ModuleType) and not hasattr(v, '__all__')]\n"
        "assert callable(tf.sessions)"
    )
    assert "teletape.core.sessions" in loaded
