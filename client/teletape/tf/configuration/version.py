"""`tf.version`: the version of TensorFlow whose names these are, and Teletape's own."""

from __future__ import annotations

from typing import Final

#: The version of TensorFlow whose public names, arguments and results Teletape follows.
TENSORFLOW: Final = "2.21.0"
TELETAPE_VERSION: Final = "0.1.0"
#: A version by PEP 440 that starts with TensorFlow's: programs compare it, or ask whether it starts with "2.".
VERSION: Final = f"{TENSORFLOW}+teletape{TELETAPE_VERSION}"
GIT_VERSION: Final = f"v{VERSION}"
COMPILER_VERSION: Final = "none: Teletape is Python and NumPy"
#: Versions of TensorFlow's format of graphs. There are no graphs here; programs only compare the numbers.
GRAPH_DEF_VERSION: Final = 2474
GRAPH_DEF_VERSION_MIN_CONSUMER: Final = 0
GRAPH_DEF_VERSION_MIN_PRODUCER: Final = 0
