"""What is written from the catalogue is current, and the digest changes when an op's structure does."""

import ast
import dataclasses

import numpy as np
import pytest

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from programs import ROOT, load_script
from teletape_engine.catalogue import describe
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import CATALOGUE, OnGpu


@pytest.mark.long
def test_the_generated_files_are_current() -> None:
    module = load_script("reference")
    assert not module.stale(), "run make reference"


def test_the_stub_of_ops_names_each_op_with_its_arguments() -> None:
    tree = ast.parse((ROOT / "engine/teletape_engine/catalogue/namespace.pyi").read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    names = {str(node.target.id) for node in classes["Ops"].body if isinstance(node, ast.AnnAssign)}  # type: ignore[attr-defined]
    assert names == set(CATALOGUE)
    (call,) = classes["_ReduceSum"].body
    assert ast.unparse(call) == (
        "def __call__(self, x: Term, /, *, axis: Axes=..., keepdims: bool=...) -> Operand:\n    ..."
    )
    (several,) = classes["_Eigh"].body
    assert ast.unparse(several).startswith("def __call__(self, x: Term, /) -> tuple[Operand, Operand]:")


def test_an_op_that_does_not_exist_is_no_attribute_of_ops() -> None:
    assert ops.reduce_sum is CATALOGUE["reduce_sum"]
    with pytest.raises(AttributeError, match="has no op 'reduce_summ'"):
        ops.reduce_summ  # noqa: B018


def test_an_op_says_what_its_gradients_are_and_what_they_keep() -> None:
    mul = describe.describe(CATALOGUE["mul"])
    assert mul["gradients"] == {"a": {"kind": "dense", "keeps": ["b"]}, "b": {"kind": "dense", "keeps": ["a"]}}
    assert describe.describe(CATALOGUE["relu"])["gradients"]["x"]["keeps"] == ["y"]
    assert describe.describe(CATALOGUE["gather"])["gradients"]["params"]["kind"] == "slices"
    assert describe.describe(CATALOGUE["floor"])["gradients"]["x"]["kind"] == "none"
    assert describe.describe(CATALOGUE["adjust_contrast"])["gradients"]["images"]["kind"] == "not_registered"


def test_the_digest_is_of_structure_not_of_prose(monkeypatch: pytest.MonkeyPatch) -> None:
    digest = describe.digest.__wrapped__  # without what it remembers: the catalogue changes here alone
    before = digest()
    monkeypatch.setitem(CATALOGUE, "tanh", dataclasses.replace(CATALOGUE["tanh"], doc="other words"))
    assert digest() == before
    monkeypatch.setitem(CATALOGUE, "tanh", dataclasses.replace(CATALOGUE["tanh"], on_gpu=OnGpu(missing="no kernel")))
    assert digest() != before


@pytest.mark.parametrize("name", ["compatibility", "protocol"])
def test_a_page_that_a_script_writes_is_current(name: str) -> None:
    module = load_script(name)
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "run make pages"


def test_an_example_is_run_for_its_result_its_ops_and_its_gradients() -> None:
    load_script("reference")  # puts scripts/ on the path
    import examples

    run = examples.of_function("tf.linalg.matmul([[1.0, 2.0]], tf.constant([[3.0], [4.0]]), transpose_a=False)")
    assert run == ("[[11]]", {"a": "dense", "b": "dense"}, ("matmul",))
    assert examples.of_function("tf.math.floordiv([7.0, 9.0], 2.0)").gradients == {"x": "None", "y": "None"}
    assert examples.of_function("tf.gather([1.0, 2.0, 3.0], [0, 2])").gradients == {"params": "IndexedSlices"}
    with pytest.raises(ValueError, match="this is none: tf\\.matmul"):
        examples.of_function("tf.matmul")


def test_the_example_of_an_op_is_what_the_op_gives() -> None:
    load_script("reference")
    import examples

    text, run = examples.of_op(CATALOGUE["cumsum"])
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    attributes = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    result = CATALOGUE["cumsum"](np.array(ast.literal_eval(call.args[0])), **attributes)
    assert examples.text(np.asarray(result)) == run.result
    assert run.gradients == {"x": "dense"}


def test_every_function_that_is_written_by_hand_shows_a_call() -> None:
    load_script("reference")
    import function_reference

    assert function_reference.without_example() == []
