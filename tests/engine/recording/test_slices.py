"""Sparse gradients become dense: rows of equal index add up, recorded or not."""

import numpy as np

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.slices import SlicesValue, SparseGradient, densify
from teletape_engine.recording.values import Value
from teletape_engine.spec import DTYPES, Spec

DENSE = Spec.of((4, 2), DTYPES["float32"])
ROWS, INDICES = np.array([[1.0, 2], [3, 4], [5, 6]], np.float32), np.array([3, 0, 3])
SUMS = [[3, 4], [0, 0], [0, 0], [6, 8]]


def value(array):
    return Value(array, Spec.of(array.shape, array.dtype), 0)


class Recorder:
    """Returns the call that it would record."""

    def op(self, op, *inputs, **attrs):
        return op, inputs, attrs


def test_rows_of_equal_index_add_up():
    assert densify(SparseGradient(ROWS, INDICES, DENSE)).tolist() == SUMS


def test_what_is_dense_stays_as_it_is():
    for gradient in (ROWS, None):
        assert densify(gradient) is gradient


def test_a_recorded_sparse_gradient_is_summed_as_arrays_without_a_recorder():
    assert densify(SlicesValue(value(ROWS), value(INDICES), DENSE)).tolist() == SUMS


def test_a_recorder_records_the_sum():
    values, indices = value(ROWS), value(INDICES)
    op, inputs, attrs = densify(SlicesValue(values, indices, DENSE), Recorder())
    assert (op, inputs, attrs) == (ops.unsorted_segment_sum, (values, indices), {"num_segments": 4})
