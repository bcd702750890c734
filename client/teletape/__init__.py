"""Teletape: gradients as a service. `import teletape as tf`, and a program written for tf.GradientTape runs on it.

tf.connect("https://gpu-box:8470", api_key="…")   # without it: the same engine, inside this process

The names are those of teletape.names.table, imported when they are first used. `__init__.pyi` and its neighbours list
them for editors and type checkers; `make reference` writes all of these.
"""

import sys as _sys

from teletape.names.modules import publish as _publish
from teletape.tf.configuration import version as _version

__version__ = _version.VERSION
__git_version__, __compiler_version__ = _version.GIT_VERSION, _version.COMPILER_VERSION

__all__ = _publish(_sys.modules[__name__])
