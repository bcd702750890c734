"""The tree of errors: what is drawn is what there is, a code for each, and what a TensorFlow program sees."""

import inspect
import re

import pytest

from teletape_engine import errors
from teletape_engine.errors import TeletapeError, tree

CLASSES = [value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, TeletapeError)]
DRAWN = re.findall(r"^    ([│ ├└─]*)(\w+Error) +(\w*)$", errors.__doc__ or "", re.MULTILINE)


def test_the_drawing_is_the_tree():
    assert {name for _, name, _ in DRAWN} == {cls.__name__ for cls in CLASSES}
    above = {}
    for indent, name, code in DRAWN:
        depth = len(indent) // 3
        above[depth] = name
        cls = getattr(errors, name)
        if depth:
            assert cls.__bases__[0].__name__ == above[depth - 1]
            assert cls.code == code


def test_every_class_has_a_code_of_its_own():
    own = [cls for cls in CLASSES if cls is not TeletapeError]
    assert len({cls.code for cls in own}) == len(own)
    for cls in own:
        assert "code" in vars(cls), cls
        assert tree()[cls.code] is cls
        assert re.fullmatch(r"[a-z_]+", cls.code)


def test_a_tree_below_a_branch():
    assert set(tree(errors.UnknownIdError)) == {"released_id"}


@pytest.mark.parametrize("cls", CLASSES)
def test_the_message_and_the_facts(cls):
    error = cls("what was found", needed=3)
    assert (str(error), error.message, error.details) == ("what was found", "what was found", {"needed": 3})


SURFACES = {
    "tape_consumed": RuntimeError,
    "tape_state": ValueError,
    "no_gradient_registered": LookupError,
    "gradient_registered": KeyError,
}


@pytest.mark.parametrize("cls", CLASSES)
def test_what_a_tensorflow_program_sees(cls):
    error = cls("words")
    seen = error.surfaced()
    if cls.code in SURFACES:
        assert type(seen) is SURFACES[cls.code]
        assert seen.args == ("words",)
        assert isinstance(error, type(seen))  # whoever catches the builtin catches the class too
    else:
        assert seen is error


def test_a_consumed_tape_has_tensorflows_text():
    assert str(errors.TapeConsumedError()) == (
        "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)"
    )


@pytest.mark.parametrize(
    ("cls", "builtin"),
    [
        (errors.InvalidArgumentError, ValueError),
        (errors.UnknownIdError, KeyError),
        (errors.ResourceExhaustedError, MemoryError),
        (errors.StructureMismatchError, RuntimeError),
    ],
)
def test_the_builtin_that_a_caller_expects(cls, builtin):
    assert issubclass(cls, builtin)
