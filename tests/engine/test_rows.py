"""Ops over rows: an op on operands with rows gives, row by row, what it gives alone; so do composites."""

import numpy as np
import pytest

from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.operand import Operand
from teletape_engine.checking.harness import Case, Context, Shapes, is_array
from teletape_engine.derivatives.batching import Rows
from teletape_engine.errors import InternalError
from teletape_engine.spec import Spec

VECTORISED = sorted(name for name, op in CATALOGUE.items() if op.inputs and not op.dynamic)


def stacked(case):
    """Three rows of each array among the inputs; integers stay, since they may be indices."""
    return [
        np.stack([one * (1 - 0.01 * k) for k in range(3)]) if is_array(one) and one.dtype.kind == "f" else one
        for one in case.inputs
    ]


def row(one, k, case_input):
    return one[k] if one is not case_input else one


@pytest.mark.parametrize("name", VECTORISED)
def test_an_op_over_rows_is_the_op_row_by_row(name):
    op = CATALOGUE[name]
    for sample in op.samples():
        case = Case(op, sample)
        given = stacked(case)
        if all(a is b for a, b in zip(given, case.inputs, strict=True)):
            continue
        expected = [case.run([row(a, k, b) for a, b in zip(given, case.inputs, strict=True)]) for k in range(3)]
        with case.cpu.quiet():
            found = over_rows(None, case, given)
            real = over_rows(Context(), case, given)
        np.testing.assert_allclose(found, np.stack(expected), rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(real.value.array, np.stack(expected), rtol=1e-12, atol=1e-13)
        foreseen = over_rows(Shapes(), case, given)
        assert foreseen.value.spec is Spec.of(real.value.array.shape, real.value.array.dtype)


def over_rows(recorder, case, given):
    rows, args = Rows(recorder), []
    for one, alone in zip(given, case.inputs, strict=True):
        if is_array(one):
            below = one if recorder is None else Operand(recorder, recorder.value(one))
            args.append(rows.shared(below) if one is alone else rows.stack(below))
        else:
            args.append(one)
    return rows.unstack(rows.call(case.op, args, case.attrs), 3)


def test_what_is_the_same_for_all_rows_is_computed_once():
    rows = Rows(None)
    both = rows.shared(np.ones(2)) * rows.shared(np.full(2, 3.0))
    assert both.value.below.shape == (2,)
    assert not both.value.stacked
    np.testing.assert_array_equal(rows.unstack(both, 4), np.full((4, 2), 3.0))


def test_numbers_beside_rows_take_their_dtype():
    rows = Rows(None)
    x = rows.stack(np.ones((3, 2), np.float32))
    for made in (x * 2.0, 2.0 - x, CATALOGUE["clip_by_value"](x, 0.0, 0.5)):
        assert made.dtype == np.float32
        assert made.shape == (2,)


def test_an_op_whose_shape_hangs_on_values_has_no_form_over_rows():
    rows = Rows(None)
    with pytest.raises(InternalError, match="'nonzero' has no form over rows"):
        rows.call(CATALOGUE["nonzero"], [rows.stack(np.ones((2, 3)))], {})
