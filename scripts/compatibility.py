"""Writes docs/compatibility.md from the SDK's namespace; with --check it says whether the page is current.

`COMMON` holds names that TensorFlow programs often use. The page lists those that the SDK does not have yet.
"""

import inspect
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import teletape as tf
from teletape.namespace import surface

PAGE = Path(__file__).resolve().parents[1] / "docs" / "compatibility.md"
HEAD = """\
# Compatibility: which of TensorFlow's names exist

Written by `make pages` from the SDK's namespace; a test holds it current. Names of functions are as in TensorFlow 2.21,
and so are their arguments; arguments that steer only TensorFlow's graphs are accepted and ignored.
[conformance.md](conformance.md) says how the behaviour is tested, and where it differs on purpose. Names marked * are
Teletape's own.

"""
MODULES = ("data", "data.experimental", "debugging", "errors", "nest", "random")
INTERNAL = {"random.next_draw", "errors.error_for", "errors.error_of"}
#: What TensorFlow does not have.
OWN = {
    "connect",
    "session",
    "sync",
    "inside_function",
    "debugging.check_gradients",
    "errors.AuthenticationError",
    "errors.ConnectionFailed",
    "errors.GradientMismatch",
    "errors.PoisonedError",
    "errors.RequestError",
    "errors.SessionEndedError",
    "errors.TeletapeError",
}
COMMON = """
train.Checkpoint
saved_model.save sort argsort math.top_k math.lgamma math.digamma math.igamma math.betainc math.cumulative_logsumexp
math.erfinv math.xlogy math.bincount linalg.svd linalg.eigh linalg.qr linalg.lstsq linalg.expm repeat roll reverse
unique searchsorted tensor_scatter_nd_max nn.l2_normalize nn.depthwise_conv2d nn.conv1d nn.conv3d nn.ctc_loss
nn.local_response_normalization random.shuffle random.categorical random.gamma random.poisson random.stateless_normal
random.Generator signal.fft signal.ifft signal.stft TensorArray RaggedTensor SparseTensor Graph
debugging.enable_check_numerics image.resize distribute.MirroredStrategy summary.scalar io.read_file
""".split()


def names() -> set[str]:
    """Every public name, without the leading `tf.`."""
    collected = {name for name in tf.__all__ if not isinstance(getattr(tf, name), ModuleType)} | set(surface())
    return collected | {f"{module}.{name}" for module in MODULES for name in members(at(module))}


def members(module: ModuleType) -> list[str]:
    """The public functions and classes of a module: what it lists, or else what is defined in it, and error classes."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return [name for name in listed if not isinstance(getattr(module, name), ModuleType)]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and (inspect.isclass(value) or inspect.isfunction(value))
        if f"{module.__name__.rpartition('.')[2]}.{name}" not in INTERNAL
        if value.__module__ == module.__name__
        or (module is tf.errors and inspect.isclass(value) and issubclass(value, tf.errors.TeletapeError))
    ]


def at(path: str) -> ModuleType:
    """The value of a dotted name."""
    value = tf
    for part in path.split("."):
        value = getattr(value, part)
    return value


def missing() -> list[str]:
    """The common names that do not exist."""
    absent = []
    for path in COMMON:
        try:
            at(path)
        except AttributeError:
            absent.append(path)
    return absent


def page() -> str:
    """The whole page."""
    modules: dict[str, list[str]] = {}
    for name in sorted(names()):
        module, _, member = name.rpartition(".")
        modules.setdefault(module, []).append(f"`{member}`" + ("*" if name in OWN else ""))
    parts = [HEAD]
    for module, listed in sorted(modules.items()):
        parts.append(f"## tf{'.' * bool(module)}{module}\n\n{wrapped(listed)}\n\n")
    parts.append("## Not there yet\n\nCommon names that raise AttributeError:\n\n")
    parts.append(wrapped([f"`{name}`" for name in missing()]) + "\n")
    return "".join(parts)


def wrapped(words: list[str]) -> str:
    """The words in lines of 120 columns."""
    return textwrap.fill(" ".join(words), 120, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(
            0 if PAGE.read_text(encoding="utf-8") == page() else "docs/compatibility.md is not current: make pages"
        )
    PAGE.write_text(page(), encoding="utf-8")
