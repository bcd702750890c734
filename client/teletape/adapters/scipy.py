"""`teletape.adapters.scipy`: the functions that SciPy's optimizers and solvers ask for.

All of it is float64 for SciPy; a function that declares another dtype gets that.
"""

from __future__ import annotations

from teletape.adapters.equations import RightHandSide as RightHandSide
from teletape.adapters.points import Objective as Objective
from teletape.adapters.points import Residuals as Residuals

__all__ = ["Objective", "Residuals", "RightHandSide"]
