"""The catalogue: ops by name, ours and TensorFlow's, and errors for names and attributes that do not exist."""

import pytest

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.errors import BadAttributeError, UnknownOpError


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("matmull", "did you mean 'matmul'"),
        ("reduce_summ", "'reduce_sum'"),
        ("tf.nn.reluu", "'relu'"),
        ("__import__('os')", "GET /v1/ops lists the ops there are"),
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
    ],
)
def test_tensorflows_names_mean_our_ops(name, ours):
    assert CATALOGUE.named(name).name == ours


def test_a_name_of_several_ops_means_none_of_them():
    assert CATALOGUE["det_sign"].op_type == CATALOGUE["log_abs_det"].op_type == "LogMatrixDeterminant"
    with pytest.raises(UnknownOpError):
        CATALOGUE.named("LogMatrixDeterminant")


def test_no_synonym_is_the_name_of_another_op():
    assert not CATALOGUE.synonyms.keys() & CATALOGUE.keys()
    for op in CATALOGUE.values():
        assert all(CATALOGUE.named(name) is op for name in op.tf)


def test_a_wrong_attribute_lists_those_there_are():
    with pytest.raises(BadAttributeError, match="keepdims"):
        CATALOGUE["reduce_sum"].attrs({"keepdim": True})
