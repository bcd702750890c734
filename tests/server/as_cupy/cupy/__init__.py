"""The substitute for CuPy under CuPy's name, for processes whose PYTHONPATH has the folder around this package.

CUPY_SUBSTITUTE_GPUS says how many GPUs it has.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3] / "engine"))
import substitute

sys.modules.update(substitute.modules())
