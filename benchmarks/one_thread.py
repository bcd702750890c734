"""Imported first by a benchmark: starts it again with one BLAS thread.

OPENBLAS_CORETYPE is removed too, since it slows NumPy.
"""

import os
import sys

if "OPENBLAS_CORETYPE" in os.environ or os.environ.get("OPENBLAS_NUM_THREADS") != "1":
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    os.execve(sys.executable, [sys.executable, *sys.argv], {**environment, "OPENBLAS_NUM_THREADS": "1"})
