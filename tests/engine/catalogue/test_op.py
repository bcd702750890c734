"""The catalogue: ops by name, ours and TensorFlow's, and errors for names and attributes that do not exist."""

import numpy as np
import pytest

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.signature import NUMPY_NAMES, REQUIRED
from teletape_engine.errors import BadAttributeError, UnknownOpError


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("matmull", "did you mean 'matmul'"),
        ("reduce_summ", "'reduce_sum'"),
        ("tf.nn.reluu", "'relu'"),
        ("__import__('os')", "GET /v1/ops lists the ops there are"),
        ("sumn", "'sum'"),
        ("", "GET /v1/ops lists"),
    ],
)
def test_an_unknown_name_gets_the_nearest(wrong, words):
    with pytest.raises(UnknownOpError, match="unknown op ") as caught:
        CATALOGUE.named(wrong)
    assert words in str(caught.value)
    assert caught.value.details == {"op": wrong}


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("add", "add"),
        ("AddV2", "add"),
        ("tf.add", "add"),
        ("math.add", "add"),
        ("tf.raw_ops.AddV2", "add"),
        ("tf.nn.relu", "relu"),
        ("negative", "neg"),
        ("math.log_softmax", "log_softmax"),
        ("sigmoid_cross_entropy_with_logits", "sigmoid_cross_entropy"),
        ("sum", "reduce_sum"),
        ("np.sum", "reduce_sum"),
        ("numpy.arctan2", "atan2"),
        ("np.sin", "sin"),
        ("np.multiply", "mul"),
    ],
)
def test_tensorflows_and_numpys_names_mean_our_ops(name, ours):
    assert CATALOGUE.named(name).name == ours


def test_a_name_of_several_ops_means_none_of_them():
    assert CATALOGUE["det_sign"].op_type == CATALOGUE["log_abs_det"].op_type == "LogMatrixDeterminant"
    with pytest.raises(UnknownOpError):
        CATALOGUE.named("LogMatrixDeterminant")


def test_no_synonym_is_the_name_of_another_op():
    assert not CATALOGUE.synonyms.keys() & CATALOGUE.keys()
    for op in CATALOGUE.values():
        assert all(CATALOGUE.named(name) is op for name in op.tf)


def test_every_name_of_numpy_is_there_and_computes_the_same():
    assert {name for name in NUMPY_NAMES if CATALOGUE.named(name).name != NUMPY_NAMES[name]} == set()
    x = np.array([[0.25, 0.5], [0.75, 0.125]])
    compared, differ = 0, []
    for name, op in NUMPY_NAMES.items():
        record, function = CATALOGUE[op], getattr(np, name, None)
        attrs = {attr.name: attr.default for attr in record.schema.attrs}
        if function is None or record.refuses or REQUIRED in attrs.values() or "bitwise" in name:
            continue  # NumPy has it in another module, or its arguments differ
        first = x > 0.3 if op in ("reduce_any", "reduce_all") else x + 1 if op == "acosh" else x
        arguments = [first, x + 1, x + 2][: len(record.inputs)]
        chosen = {"axis": 0} if "axis" in attrs else {}
        result = record.forward(np, *arguments, **record.attrs(chosen))
        compared += 1
        if not np.allclose(result, function(*arguments, **chosen)):
            differ.append(name)
    assert compared > 25
    assert differ == []


def test_a_wrong_attribute_lists_those_there_are():
    with pytest.raises(BadAttributeError, match="keepdims"):
        CATALOGUE["reduce_sum"].attrs({"keepdim": True})
