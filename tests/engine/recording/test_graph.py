"""Structure alone: who is watched, when a variable is read anew, where tapes are active. Values here have no arrays."""

import pytest

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine.catalogue.binding import bind
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.errors import TapeStateError
from teletape_engine.recording.context import Context
from teletape_engine.recording.tape import Tape, record
from teletape_engine.recording.values import Literal, Variable, new_uid
from teletape_engine.spec import DTYPES, WEAK, Spec

F32, I32 = DTYPES["float32"], DTYPES["int32"]


class Shape:
    """A recorded value of which only the spec is known."""

    def __init__(self, spec=None, uid=None):
        self.spec = spec or Spec.of((2,), F32)
        self.uid = uid or new_uid()

    def alias(self, uid):
        return Shape(self.spec, uid)


@pytest.fixture
def context():
    return Context()


def variable(trainable=True, dtype=F32):
    return Variable(Shape(Spec.of((2,), dtype)), trainable=trainable)


def call(context, name, *inputs):
    """Records an op as every recorder does."""
    op = CATALOGUE[name]
    bound = bind(op, tuple(operand.spec for operand in inputs), op.attrs({}))
    result = Shape(bound.spec)
    record(context.tapes, bound, inputs, result, "here")
    return result


# ----------------------------------------------------------------------------------------------------------- recording
def test_an_op_is_recorded_by_the_tapes_that_follow_an_input(context):
    a, b, outer, inner = Shape(), Shape(), Tape(), Tape()
    context.open(outer)
    context.open(inner)
    context.watch(outer, [a, b])
    context.watch(inner, [b])
    c = call(context, "neg", a)
    d = call(context, "mul", b, c)
    assert [len(tape.nodes) for tape in (outer, inner)] == [2, 1]
    plan, inputs, output, _, where = inner.nodes[0]
    assert (inputs, output, where) == ((b.uid, c.uid), d.uid, "here")
    assert [i for i, _ in plan.rules] == [0]
    assert [i for i, _ in outer.nodes[1][0].rules] == [0, 1]
    assert c.uid not in inner.tracked
    assert d.uid in inner.tracked


@pytest.mark.parametrize("op", ["stop_gradient", "argmax"])
def test_what_has_no_gradient_by_nature_is_not_followed(context, op):
    a, tape = Shape(), Tape()
    context.open(tape)
    context.watch(tape, [a])
    assert call(context, op, a).uid not in tape.tracked
    assert tape.nodes == []


def test_numbers_are_followed_by_nobody(context):
    a, tape = Shape(), Tape()
    context.open(tape)
    context.watch(tape, [a])
    call(context, "mul", a, Literal(2.0))
    assert tape.nodes[0][1] == (a.uid, None)


@pytest.mark.parametrize(
    ("op", "inputs", "unregistered", "sparse"),
    [("neg", 1, False, 0), ("adjust_contrast", "image", True, 0), ("gather", "rows", False, 1)],
)
def test_a_tape_knows_whether_it_holds_anything_out_of_the_ordinary(context, op, inputs, unregistered, sparse):
    tape = Tape()
    context.open(tape)
    first = Shape(Spec.of((4, 4, 3), F32))
    second = {1: (), "image": (Literal(2.0),), "rows": (Shape(Spec.of((2,), I32)),)}[inputs]
    context.watch(tape, [first])
    call(context, op, first, *second)
    assert (tape.unregistered, tape.sparse) == (unregistered, sparse)
    tape.clear()
    assert (tape.unregistered, tape.sparse) == (False, 0)


def test_watching_an_integer_has_no_effect(context):
    tape, count = Tape(), Shape(Spec.of((), I32))
    context.open(tape)
    context.watch(tape, [count, variable(dtype=I32)])
    assert (tape.tracked, tape.leaves) == ({}, set())
    assert len(tape.variables) == 1  # listed all the same


# ----------------------------------------------------------------------------------------------------- variable reads
def test_outside_tapes_a_read_is_the_value_itself(context):
    v = variable()
    assert context.read(v) is v.value


def test_a_read_is_one_node_per_variable_and_epoch(context):
    v, w, tape = variable(), variable(), Tape()
    context.open(tape)
    first = context.read(v)
    assert context.read(v) is first
    context.read(w)
    assert [(node[1], node[2] == first.uid) for node in tape.nodes] == [((v.uid,), True), ((w.uid,), False)]
    assert list(tape.variables) == [v.uid, w.uid]


EPOCHS = {
    "open": lambda context, tape, v: context.open(Tape()),
    "watch": lambda context, tape, v: context.watch(tape, [Shape()]),
    "pause and resume": lambda context, tape, v: (context.pause(tape), context.open(tape)),
    "reset": lambda context, tape, v: context.reset(tape),
    "assign": lambda context, tape, v: v.assign(Shape()),
    "leaving another": lambda context, tape, v: context.pause(context.tapes[0]),
}


@pytest.mark.parametrize("event", EPOCHS)
def test_the_epoch_rises(context, event):
    v, other, tape = variable(), Tape(watch_accessed=False), Tape()
    context.open(other)
    context.open(tape)
    first = context.read(v)
    EPOCHS[event](context, tape, v)
    second = context.read(v)
    assert second is not first
    assert second.uid in tape.tracked
    assert len(tape.nodes) == (1 if event == "reset" else 2)
    assert context.read(v) is second


def test_an_assignment_of_another_variable_is_no_new_read(context):
    v, w, tape = variable(), variable(), Tape()
    context.open(tape)
    first = context.read(v)
    w.assign(Shape())
    assert context.read(v) is first


@pytest.mark.parametrize("watch", [False, True])
@pytest.mark.parametrize("accessed", [False, True])
@pytest.mark.parametrize("trainable", [False, True])
def test_which_reads_are_followed(context, trainable, accessed, watch):
    v, tape = variable(trainable), Tape(watch_accessed=accessed)
    context.open(tape)
    if watch:
        context.watch(tape, [v])
    read = context.read(v)
    followed = watch or (trainable and accessed)
    assert (read.uid in tape.tracked) == (v.uid in tape.variables) == (len(tape.nodes) == 1) == followed


def test_an_integer_variable_is_listed_and_not_followed(context):
    v, tape = variable(dtype=I32), Tape()
    context.open(tape)
    assert context.read(v).uid not in tape.tracked
    assert list(tape.variables) == [v.uid]


def test_the_reads_of_an_epoch_are_known_for_their_memory(context):
    v, tape = variable(), Tape()
    context.open(tape)
    read = context.read(v)
    assert context.reads() == [read]
    context.pause(tape)
    assert context.reads() == []


# --------------------------------------------------------------------------------------------------- the life of a tape
def test_tapes_may_leave_in_any_order(context):
    tapes = [Tape() for _ in range(3)]
    for tape in tapes:
        context.open(tape)
    context.pause(tapes[0])
    context.pause(tapes[2])
    assert context.tapes == [tapes[1]]
    context.open(tapes[0])
    assert context.tapes == [tapes[1], tapes[0]]


def test_a_tape_continues_where_it_was(context):
    a, tape = Shape(), Tape()
    context.open(tape)
    context.watch(tape, [a])
    call(context, "neg", a)
    context.pause(tape)
    call(context, "neg", a)
    context.open(tape)
    call(context, "neg", a)
    assert len(tape.nodes) == 2


def test_reset_forgets_watches_and_goes_on(context):
    a, v, tape = Shape(), variable(), Tape()
    context.open(tape)
    context.watch(tape, [a])
    context.read(v)
    context.reset(tape)
    call(context, "neg", a)
    assert (tape.nodes, tape.tracked, tape.leaves, tape.variables) == ([], {}, set(), {})
    context.watch(tape, [a])
    call(context, "neg", a)
    assert len(tape.nodes) == 1


def test_wrong_states(context):
    tape = Tape()
    for act in (context.pause, context.reset):
        with pytest.raises(TapeStateError, match=r"^Tape is not recording\.$"):
            act(tape)
    context.open(tape)
    with pytest.raises(
        TapeStateError, match="Tape is still recording, This can happen if you try to re-enter an already"
    ):
        context.open(tape)
    assert context.tapes == [tape]


# -------------------------------------------------------------------------------------------------------------- numbers
@pytest.mark.parametrize("number", [True, 3, 2.5, 1j])
def test_a_literal_is_its_number_and_its_kind(number):
    literal = Literal(number)
    assert (literal.array, literal.uid, repr(literal)) == (number, None, repr(number))
    assert literal.spec is WEAK[type(number)]


def test_literals_are_equal_by_number_and_kind():
    assert Literal(1) == Literal(1)
    assert len({Literal(1), Literal(1.0), Literal(True), Literal(1 + 0j), Literal(1)}) == 4
    assert Literal(1) != 1
