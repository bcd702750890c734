"""Ops over rows: an op on operands with rows gives, row by row, what it gives alone; so do composites."""

import numpy as np
import pytest

from op_laws.harness import Case, CpuExecutor, as_operand, is_array
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.operand import Operand
from teletape_engine.derivatives.batching import Rows
from teletape_engine.errors import InternalError
from teletape_engine.recording.spec_recorder import SpecRecorder
from teletape_engine.spec import Spec

VECTORISED = sorted(name for name, op in CATALOGUE.items() if op.inputs and not op.dynamic)


def stacked(case):
    """Three rows of each array among the inputs; integers stay, since they may be indices."""
    return [
        np.stack([operand * (1 - 0.01 * k) for k in range(3)])
        if is_array(operand) and operand.dtype.kind == "f"
        else operand
        for operand in case.inputs
    ]


def row(item, k, case_input):
    return item[k] if item is not case_input else item


@pytest.mark.parametrize("name", VECTORISED)
def test_an_op_over_rows_is_the_op_row_by_row(name):
    op = CATALOGUE[name]
    for sample in op.samples():
        case = Case(op, sample)
        inputs = stacked(case)
        if all(a is b for a, b in zip(inputs, case.inputs, strict=True)):
            continue
        by_row = [case.results([row(a, k, b) for a, b in zip(inputs, case.inputs, strict=True)]) for k in range(3)]
        with case.backend.quiet():
            results = over_rows(None, case, inputs)
            recorded = over_rows(CpuExecutor(), case, inputs)
        foreseen = over_rows(SpecRecorder(), case, inputs)
        for expected, result, real, spec in zip(zip(*by_row, strict=True), results, recorded, foreseen, strict=True):
            np.testing.assert_allclose(result, np.stack(expected), rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(real.value.array, np.stack(expected), rtol=1e-12, atol=1e-13)
            assert spec.value.spec is Spec.of(real.value.array.shape, real.value.array.dtype)


def over_rows(recorder, case, inputs):
    rows, args = Rows(recorder), []
    for item, alone in zip(inputs, case.inputs, strict=True):
        if is_array(item):
            below = item if recorder is None else Operand(recorder, as_operand(recorder, item))
            args.append(rows.shared(below) if item is alone else rows.stack(below))
        else:
            args.append(item)
    result = rows.call(case.op, args, case.attrs)
    if isinstance(result, tuple):
        return tuple([rows.unstack(each, 3) for each in result])
    return (rows.unstack(result, 3),)


def test_what_is_the_same_for_all_rows_is_computed_once():
    rows = Rows(None)
    both = rows.shared(np.ones(2)) * rows.shared(np.full(2, 3.0))
    assert both.value.below.shape == (2,)
    assert not both.value.stacked
    np.testing.assert_array_equal(rows.unstack(both, 4), np.full((4, 2), 3.0))


def test_numbers_next_to_rows_take_their_dtype():
    rows = Rows(None)
    x = rows.stack(np.ones((3, 2), np.float32))
    for result in (x * 2.0, 2.0 - x, CATALOGUE["clip_by_value"](x, 0.0, 0.5)):
        assert result.dtype == np.float32
        assert result.shape == (2,)


def test_an_op_whose_shape_hangs_on_values_has_no_form_over_rows():
    rows = Rows(None)
    with pytest.raises(InternalError, match="'nonzero' has no form over rows"):
        rows.call(CATALOGUE["nonzero"], [rows.stack(np.ones((2, 3)))], {})
