"""Random functions give the same bytes as plans; `make fuzz ARGS='--only plans'` tries more of them."""

import numpy as np
import pytest

from fuzz.plans import Plans
from fuzz.target import Finding, run
from teletape_engine.plans.ir import instructions
from teletape_engine.plans.run import plan


def test_random_functions_give_the_same_bytes_as_plans():
    report = run(Plans(), 9, iter(range(40)))
    assert not report.findings, "\n".join(text for _, _, text in report.findings.values())
    assert report.outcomes["planned"] > 35


def test_another_result_is_found(monkeypatch):
    monkeypatch.setattr(plan, "LIBRARY_LOADED", None)
    monkeypatch.setattr(instructions, "_copy", lambda source, output: np.copyto(output, 7))
    case = {"dtype": "float32", "shape": [3, 4], "seed": 1, "steps": [[19, 0, None], [22, 0, None]]}
    with pytest.raises(Finding, match="another result"):
        Plans().check(case)
