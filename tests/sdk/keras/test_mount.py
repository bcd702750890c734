"""How `tf.keras` comes to be Keras: when it is imported, by which names, what is refused, and what stays outside."""

import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

from teletape.keras_mount import replacements, surface


def run(program: str, path: Path | None = None) -> str:
    """Runs a program in a process of its own and returns what it prints."""
    setup = f"import sys; sys.path.insert(0, {str(path)!r})\n" if path else ""
    done = subprocess.run(
        [sys.executable, "-P", "-c", setup + textwrap.dedent(program)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_keras_is_imported_when_first_used_and_nothing_is_named_tensorflow(tmp_path: Path) -> None:
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").write_text("MARK = 7\n")
    output = run(
        """
        import sys
        import teletape as tf
        assert not [name for name in sys.modules if name.partition(".")[0] == "keras"]
        from keras.layers import Layer
        import teletape.keras.layers
        from teletape.keras import layers
        from teletape.keras.layers import Dense
        import keras
        assert "tensorflow" not in sys.modules
        assert tf.keras is sys.modules["keras._tf_keras.keras"] is teletape.keras
        assert tf.keras.layers is layers is teletape.keras.layers
        assert Dense is keras.layers.Dense is tf.keras.layers.Dense and issubclass(Dense, Layer)
        assert tf.optimizers is keras.optimizers and tf.initializers is keras.initializers
        assert tf.losses is tf.keras.losses and tf.metrics is tf.keras.metrics
        print(float(Dense(1, kernel_initializer="ones")(tf.constant([[2.0, 3.0]]))[0, 0]))
        print(keras.backend.backend(), [name for name in sys.modules if name.partition(".")[0] == "tensorflow"])
        import tensorflow  # the real one, if it is installed
        print(tensorflow.MARK)
        """,
        tmp_path,
    )
    assert output.splitlines() == ["5.0", "tensorflow []", "7"]


def refusal(before: str, name: str = "tf.keras.Sequential") -> str:
    """What the name raises after some statements."""
    return run(
        f"""
        import sys
        from types import ModuleType, SimpleNamespace
        import teletape as tf
        {before}
        try:
            {name}
        except ImportError as error:
            print(error)
        """
    )


NO_KERAS = "from teletape.keras_mount import mount; mount.installed = lambda: False"


@pytest.mark.parametrize("name", ["tf.keras.Sequential", "tf.optimizers", "tf.keras.layers"])
def test_without_keras_a_name_says_what_to_install(name: str) -> None:
    wanted = name if name.startswith("tf.keras") else name.replace("tf.", "tf.keras.")
    assert refusal(NO_KERAS, name) == f"{wanted} needs Keras: pip install 'teletape[keras]'"


def test_a_program_may_put_teletape_into_the_place_of_tensorflow() -> None:
    output = run(
        """
        import sys
        import teletape
        sys.modules["tensorflow"] = teletape
        import keras
        import tensorflow as tf
        print(tf.keras.layers is keras._tf_keras.keras.layers, keras.ops.sum(tf.ones([3])).numpy())
        """
    )
    assert output == "True 3.0"


def test_another_backend_that_is_imported_before_is_refused() -> None:
    text = refusal(
        "sys.modules['keras'] = ModuleType('keras'); sys.modules['keras.src.backend.config'] = "
        "SimpleNamespace(backend=lambda: 'jax')"
    )
    assert "imported Keras with the jax backend before" in text
    assert "before `import keras`" in text


def test_an_unknown_version_is_refused() -> None:
    text = refusal("from teletape.keras_mount import mount; mount.metadata.version = lambda name: '3.13.2'")
    assert text == (
        "tf.keras works with keras>=3.14,<3.17, and keras 3.13.2 is installed: pip install 'teletape[keras]'"
    )


def test_a_module_without_a_function_that_is_replaced_is_refused() -> None:
    module = ModuleType("keras.src.backend.tensorflow.trainer")
    module.EpochIterator = object  # type: ignore[attr-defined]  # what Keras's module imports
    with pytest.raises(ImportError, match=r"does not know this version of Keras: .*trainer has no 'TFEpochIterator'"):
        replacements.replace(module)


def test_what_is_not_dense_is_refused_with_the_reason() -> None:
    module = surface.module("tensorflow")
    with pytest.raises(NotImplementedError, match=r"no tf\.SparseTensor on Teletape: its layers take dense"):
        module.SparseTensor([[0]], [1.0], [3])
    with pytest.raises(NotImplementedError, match=r"no tf\.sparse\.to_dense on Teletape"):
        module.sparse.to_dense(1)


def test_keras_sees_the_version_of_tensorflow() -> None:
    module = surface.module("tensorflow")
    assert module.__version__.startswith("2.21.0")
    assert not hasattr(module, "__wrapped__")
