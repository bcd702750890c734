"""`Session.execute`: every command right and wrong, ids and their ends, failures, retries, contexts, cancelling."""

import gc
import weakref

import numpy as np
import pytest

from teletape_engine.commands import (
    COMMANDS,
    Assign,
    Batch,
    Call,
    CallProgram,
    ContextSwitch,
    Declare,
    DefineProgram,
    Fetch,
    Gradient,
    MakeVariable,
    Part,
    Put,
    TapeOpen,
    TapePause,
    TapeReset,
    TapeResume,
    TapeWatch,
)
from teletape_engine.errors import (
    OutOfTurnError,
    PoisonedError,
    ReleasedIdError,
    SequenceConflictError,
    UnknownIdError,
)
from teletape_engine.graph import Literal
from teletape_engine.session import CLIENT_BITS, Fetched, Kinds, Made, Session, SlicesArrays

X = np.array([1.0, 2.0, 3.0], np.float32)


@pytest.fixture
def session():
    return Session()


def run(session, *todo, releases=(), **how):
    """The results of commands that all happen."""
    answer = session.execute(Batch(todo, releases), **how)
    assert answer.failure is None, answer.failure
    return answer.results


def failing(session, *todo, releases=()):
    """The failure of commands of which one fails."""
    failure = session.execute(Batch(todo, releases)).failure
    assert failure is not None
    return failure


def value(session, name):
    (result,) = run(session, Fetch(name))
    return result.array


def watched(*todo, tape="t", persistent=False):
    """`todo` under a tape that watches x."""
    return Put("x", X), TapeOpen(tape, persistent), TapeWatch(tape, ("x",)), *todo


# ------------------------------------------------------------------------------------------------ every command, right
def test_every_command_of_the_vocabulary_is_executed(session):
    assert set(session._do) == set(COMMANDS.values())


def test_put_and_fetch_give_the_same_bytes(session):
    for i, dtype in enumerate(("float16", "float32", "int64", "bool", "complex64")):
        array = np.arange(6).reshape(2, 3).astype(dtype)
        run(session, Put(f"v{i}", array))
        found = value(session, f"v{i}")
        assert (found.dtype, found.shape) == (array.dtype, (2, 3))
        assert found.tobytes() == array.tobytes()


def test_a_number_takes_tensorflows_dtype(session):
    run(session, Put("b", Literal(True)), Put("i", Literal(3)), Put("f", Literal(0.5)), Put("c", Literal(1j)))
    assert [value(session, name).dtype.name for name in "bifc"] == ["bool", "int32", "float32", "complex128"]


def test_a_fetch_tells_all_or_a_preview(session):
    (head,) = run(session, Put("x", X), Fetch("x", 2))
    assert head == Fetched(1, "x", head.array, head.spec, complete=False)
    assert (head.array.tolist(), head.spec.shape) == ([1.0, 2.0], (3,))
    for elements in (None, 3, 4):
        (whole,) = run(session, Fetch("x", elements))
        assert whole.complete
    (none,) = run(session, Fetch("x", 0))
    assert none.array.size == 0


@pytest.mark.parametrize("elements", [None, 2])
def test_what_is_fetched_cannot_be_written_into(session, elements):
    (found,) = run(session, Put("x", X.copy()), Fetch("x", elements))
    with pytest.raises(ValueError, match="read-only"):
        found.array[0] = 9


def test_an_op_runs_on_values_numbers_tensors_and_variables(session):
    run(
        session,
        Put("x", X),
        MakeVariable("v", np.float32(10)),
        Call("add", ("x", np.ones(3, np.float32)), ("a",)),
        Call("mul", ("a", Literal(2)), ("b",)),
        Call("sub", ("b", "v"), ("c",)),
    )
    assert value(session, "c").tolist() == [-6.0, -4.0, -2.0]


def test_assignments(session):
    run(
        session,
        MakeVariable("v", X, name="weights"),
        Assign("v", np.ones(3, np.float32)),
        Assign("v", X, "add"),
        Assign("v", np.full(3, 0.5, np.float32), "sub"),
    )
    assert value(session, "v").tolist() == [1.5, 2.5, 3.5]
    assert session.describe("v") == {
        "id": "v",
        "kind": "variable",
        "dtype": "float32",
        "shape": [3],
        "bytes": 12,
        "trainable": True,
        "version": 3,
        "name": "weights",
    }


def test_a_variable_may_start_from_a_value_and_neither_changes_the_other(session):
    run(session, Put("x", X), MakeVariable("v", "x"), MakeVariable("w", "v"), Assign("v", X, "add"))
    assert [value(session, name).tolist() for name in "xvw"] == [[1, 2, 3], [2, 4, 6], [1, 2, 3]]


def test_a_number_assigned_takes_the_variables_dtype(session):
    run(session, MakeVariable("v", np.float64(0)), Assign("v", Literal(3)), MakeVariable("n", np.int32(1)))
    assert value(session, "v").dtype == np.float64
    run(session, Assign("n", Literal(4), "add"))
    assert value(session, "n") == 5


def test_gradient_with_seeds_zeros_and_sources_not_wanted(session):
    results = run(
        session,
        *watched(Call("mul", ("x", "x"), ("y",)), persistent=True),
        Put("u", np.ones(2, np.float64)),
        Gradient("t", ("y",), ("x",), ("g",), seeds=(np.array([1, 10, 100], np.float32),)),
        Gradient("t", ("y",), ("x", "u"), ("h", "z"), unconnected="zero", predicted=("dense", "dense")),
        Gradient("t", ("y",), ("x", "u"), (None, "nothing"), predicted=("dense", "none")),
    )
    assert [one.kinds for one in results] == [("dense",), ("dense", "dense"), ("dense", "none")]
    assert value(session, "g").tolist() == [2.0, 40.0, 600.0]
    assert value(session, "h").tolist() == [2.0, 4.0, 6.0]
    assert (value(session, "z").tolist(), value(session, "z").dtype) == ([0.0, 0.0], np.float64)
    assert failing(session, Fetch("nothing")).code == "unknown_id"


def test_slices_are_one_id_with_parts(session):
    results = run(
        session,
        MakeVariable("table", np.arange(8, dtype=np.float32).reshape(4, 2)),
        TapeOpen("t"),
        Call("gather", ("table", np.array([3, 0, 3], np.int32)), ("rows",), {}),
        Gradient("t", ("rows",), ("table",), ("g",), predicted=("slices",)),
        Part("g", "values", "gv"),
        Part("g", "indices", "gi"),
        Fetch("g"),
    )
    found = results[-1].array
    assert isinstance(found, SlicesArrays)
    assert (found.indices.tolist(), found.values.shape, found.dense.shape) == ([3, 0, 3], (3, 2), (4, 2))
    assert value(session, "gi").tolist() == [3, 0, 3]
    assert value(session, "gv").tolist() == [[1, 1]] * 3
    assert session.describe("g") == {
        "id": "g",
        "kind": "slices",
        "dtype": "float32",
        "shape": [4, 2],
        "bytes": 32,
        "rows": 3,
    }
    run(session, Call("identity", ("g",), ("dense",)))
    assert value(session, "dense").tolist() == [[1, 1], [0, 0], [0, 0], [2, 2]]


def test_an_op_whose_shape_depends_on_values_tells_it(session):
    (made,) = run(session, Call("nonzero", (np.array([0, 5, 0, 7]),), ("where",)))
    assert isinstance(made, Made)
    assert made.specs[0].shape == (2, 1)
    assert value(session, "where").tolist() == [[1], [3]]


def test_a_program_is_defined_once_and_run_on_values_recorded_as_if_it_stood_there(session):
    calls = (Call("mul", ("a", "a"), ("s",)), Call("add", ("s", Literal(1.0)), ("t",)))
    run(session, DefineProgram("f", ("a",), calls, ("t", "a")))
    run(session, *watched(CallProgram("f", ("x",), ("y", "same"))))
    assert value(session, "y").tolist() == [2.0, 5.0, 10.0]
    assert value(session, "same").tolist() == X.tolist()
    run(session, Gradient("t", ("y",), ("x",), ("g",)))
    assert value(session, "g").tolist() == [2.0, 4.0, 6.0]
    assert [one["op"] for one in session.describe("f")["steps"]] == ["mul", "add"]


def test_a_program_that_gives_a_number_back_gives_a_value(session):
    run(session, DefineProgram("same", ("a",), (), ("a",)), CallProgram("same", (Literal(2.5),), ("y",)))
    assert value(session, "y") == np.float32(2.5)


def test_a_declaration_counts_whenever_it_is_made_before_the_question(session):
    contrast = Call("adjust_contrast", ("x", Literal(2.0)), ("y",))
    todo = (Put("x", np.ones((2, 2, 3), np.float32)), TapeOpen("t", True), TapeWatch("t", ("x",)), contrast)
    run(session, *todo)
    failure = failing(session, Gradient("t", ("y",), ("x",), ("g",)))
    assert (failure.code, failure.op) == ("no_gradient_registered", "adjust_contrast")
    (kinds,) = run(session, Declare("AdjustContrastv2"), Gradient("t", ("y",), ("x",), ("h",)))
    assert kinds.kinds == ("none",)


def test_listing_and_describing(session):
    run(session, *watched(Call("neg", ("x",), ("y",))), DefineProgram("f", (), (), ()), MakeVariable("v", X))
    assert [one["id"] for one in session.listing("value")] == ["x", "y"]
    assert [one["id"] for one in session.listing("variable")] == ["v"]
    assert [one["id"] for one in session.listing("program")] == ["f"]
    (tape,) = session.listing("tape")
    assert (tape["ops"], tape["recording"], tape["consumed"]) == (1, True, False)


# ------------------------------------------------------------------------------------------------ every command, wrong
OF_A_KIND = {
    "fetch": Fetch,
    "assign": lambda name: Assign(name, X),
    "assigned": lambda name: Assign("v", name),
    "op": lambda name: Call("neg", (name,), ("new",)),
    "variable": lambda name: MakeVariable("new", name),
    "watch": lambda name: TapeWatch("t", (name,)),
    "watching": lambda name: TapeWatch(name, ("x",)),
    "pause": TapePause,
    "resume": TapeResume,
    "reset": TapeReset,
    "asked": lambda name: Gradient(name, ("x",), ("x",), (None,)),
    "target": lambda name: Gradient("t", (name,), ("x",), (None,)),
    "source": lambda name: Gradient("t", ("x",), (name,), (None,)),
    "seed": lambda name: Gradient("t", ("x",), ("x",), (None,), (name,)),
    "call": lambda name: CallProgram(name, (), ()),
    "argument": lambda name: CallProgram("f", (name,), ("new",)),
    "part": lambda name: Part(name, "values", "new"),
}


def one_of_each(session):
    run(
        session,
        *watched(persistent=True),
        MakeVariable("v", X),
        MakeVariable("table", np.ones((2, 2), np.float32)),
        Call("gather", ("table", np.array([0])), ("row",)),
        Gradient("t", ("row",), ("table",), ("slices",)),
        DefineProgram("f", ("a",), (), ("a",)),
        Put("gone", X),
        releases=("gone",),
    )
    failing(session, Call("add", ("x", np.ones(7, np.float32)), ("poison",)))


@pytest.mark.parametrize("use", OF_A_KIND)
def test_an_id_that_names_nothing_is_told_from_one_that_named_something(session, use):
    one_of_each(session)
    make = OF_A_KIND[use]
    unknown = failing(session, make("nobody"))
    assert (unknown.code, unknown.details["id"]) == ("unknown_id", "nobody")
    released = failing(session, make("gone"))
    assert (released.code, released.details["id"]) == ("released_id", "gone")


VALUES = {"op", "variable", "argument", "seed", "assigned"}


@pytest.mark.parametrize("use", OF_A_KIND)
def test_a_value_never_made_tells_the_first_cause(session, use):
    one_of_each(session)
    if use == "watch":
        run(session, OF_A_KIND[use]("poison"))  # structural: it has to happen, for the others that it names
    else:
        failure = failing(session, OF_A_KIND[use]("poison"))
        assert failure.code == "poisoned"
        assert "Incompatible shapes: [3] vs. [7]" in failure.message


@pytest.mark.parametrize(
    ("use", "name", "words"),
    [
        *(
            (use, "t", "is a tape, and a value or a variable")
            for use in ("op", "variable", "target", "source", "watch")
        ),
        *((use, "x", "is a value, and a tape is needed") for use in ("pause", "resume", "reset", "asked", "watching")),
        ("assign", "x", "is a value, and a variable is needed"),
        ("assign", "f", "is a program, and a variable is needed"),
        ("fetch", "f", "is a program, and a value or a variable or slices is needed"),
        ("call", "v", "is a variable, and a program is needed"),
        ("part", "x", "is a value, and slices is needed"),
        ("source", "slices", "is slices, and a value or a variable is needed"),
    ],
)
def test_an_id_of_another_kind(session, use, name, words):
    one_of_each(session)
    failure = failing(session, OF_A_KIND[use](name))
    assert failure.code == "invalid_argument"
    assert words in failure.message


WRONG = {
    "unknown op": (Call("matmull", ("x", "x"), ("n",)), "unknown_op", "did you mean 'matmul'"),
    "TensorFlow's name": (Call("tf.math.tanh", ("x",), ("n",)), "unknown_op", "'tanh'"),
    "no op like it": (Call("qqqqqq", ("x",), ("n",)), "unknown_op", "GET /v1/ops lists"),
    "unknown attribute": (Call("reduce_sum", ("x",), ("n",), {"axes": 0}), "bad_attribute", "axes"),
    "attribute of a wrong kind": (Call("reduce_sum", ("x",), ("n",), {"axis": "first"}), "bad_attribute", "axis"),
    "axis out of range": (Call("reduce_sum", ("x",), ("n",), {"axis": 4}), "invalid_argument", "4"),
    "too few inputs": (Call("add", ("x",), ("n",)), "invalid_argument", "takes 2 inputs"),
    "no inputs": (Call("concat", (), ("n",), {"axis": 0}), "invalid_argument", "one or more inputs, found none"),
    "two outputs": (Call("neg", ("x",), ("n", "m")), "invalid_argument", "has 1 output, found 2 ids"),
    "no output": (Call("neg", ("x",), ()), "invalid_argument", "has 1 output, found 0 ids"),
    "shapes": (
        Call("add", ("x", np.ones(2, np.float32)), ("n",)),
        "invalid_argument",
        "Incompatible shapes: [3] vs. [2]",
    ),
    "dtypes": (Call("add", ("x", np.ones(3)), ("n",)), "invalid_argument", "AddV2"),
    "a number that does not fit": (
        Call("add", (np.ones(2, np.int32), Literal(0.5)), ("n",)),
        "invalid_argument",
        "float",
    ),
    "mode": (Assign("v", X, "multiply"), "invalid_argument", "it must be set, add or sub"),
    "assigned shape": (Assign("v", np.ones(2, np.float32)), "invalid_argument", "float32[3]"),
    "assigned dtype": (Assign("v", np.ones(3)), "invalid_argument", "both shape and dtype"),
    "assigned fraction": (Assign("n", Literal(1.5)), "invalid_argument", "float cannot take the dtype int32"),
    "added fraction": (Assign("n", Literal(1.5), "add"), "invalid_argument", "float cannot take the dtype int32"),
    "too large a number": (Assign("n8", Literal(300)), "invalid_argument", "does not fit dtype uint8"),
    "open again": (TapeOpen("t"), "id_in_use", "'t' is in use: a tape"),
    "resume while active": (TapeResume("t"), "tape_state", "Tape is still recording"),
    "unconnected": (Gradient("t", ("x",), ("x",), ("n",), unconnected="x"), "invalid_argument", "'x'"),
    "outputs of a gradient": (Gradient("t", ("x",), ("x",), ()), "invalid_argument", "1 sources, but 0 output ids"),
    "seeds": (Gradient("t", ("x", "x"), ("x",), ("n",), (X,)), "invalid_argument", "2 targets, but 1 seeds"),
    "seed's shape": (
        Gradient("t", ("x",), ("x",), ("n",), (np.ones(2, np.float32),)),
        "invalid_argument",
        "[2] vs. [3]",
    ),
    "seed's dtype": (Gradient("t", ("x",), ("x",), ("n",), (np.ones(3),)), "invalid_argument", "float64"),
    "prediction": (Gradient("t", ("x",), ("x",), ("n",), predicted=("none",)), "structure_mismatch", "['dense']"),
    "declared, but registered": (Declare("MatMul"), "gradient_registered", "'MatMul'!"),
    "part": (Part("slices", "rows", "n"), "invalid_argument", "values and indices, found 'rows'"),
    "arguments": (CallProgram("f", (), ("n",)), "invalid_argument", "takes 1 inputs (a), found 0"),
    "results": (CallProgram("f", ("x",), ()), "invalid_argument", "has 1 outputs, found 0 ids"),
    "an id twice": (Put("x", X), "id_in_use", "'x' is in use: a value"),
    "a variable's id": (MakeVariable("t", X), "id_in_use", "'t' is in use: a tape"),
    "an op's output in use": (Call("neg", ("x",), ("v",)), "id_in_use", "a variable"),
    "a released id": (Put("gone", X), "id_in_use", "used before and released"),
    "an op's output released": (Call("neg", ("x",), ("gone",)), "id_in_use", "used before and released"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told(session, case):
    command, code, words = WRONG[case]
    one_of_each(session)
    run(session, MakeVariable("n", np.int32(1)) if "fraction" in case else MakeVariable("n8", np.uint8(1)))
    failure = failing(session, command, Fetch("x"))
    assert failure.index == 0
    assert (failure.code, words in failure.message) == (code, True), failure
    assert value(session, "x").tolist() == X.tolist()  # the session goes on


def test_an_op_that_fails_is_named_with_the_callers_line(session):
    failure = failing(session, Put("x", X), Call("add", ("x", np.ones(2, np.float32)), ("y",), {}, "train.py:7"))
    assert (failure.index, failure.op, failure.where) == (1, "add", "train.py:7")


def test_a_consumed_tape(session):
    run(session, *watched(Call("neg", ("x",), ("y",))), Gradient("t", ("y",), ("x",), ("g",)))
    failure = failing(session, Gradient("t", ("y",), ("x",), ("h",)))
    assert (failure.code, "can only be used to compute one set" in failure.message) == ("tape_consumed", True)
    assert session.describe("t")["consumed"]


def test_a_tape_that_is_not_active(session):
    run(session, TapeOpen("t"), TapePause("t"))
    for command in (TapePause("t"), TapeReset("t")):
        failure = failing(session, command)
        assert (failure.code, failure.message) == ("tape_state", "Tape is not recording.")


def test_a_tape_active_in_another_context_cannot_be_taken_over(session):
    run(session, ContextSwitch("a"), TapeOpen("t"))
    failure = failing(session, ContextSwitch("b"), TapeResume("t"))
    assert (failure.code, "in another context" in failure.message) == ("tape_state", True)
    run(session, ContextSwitch("b"), TapePause("t"), TapeResume("t"))


# ---------------------------------------------------------------------------------------------------------------- ids
def test_integer_and_typed_ids_do_not_meet(session):
    run(session, Put("1", X), Put(1, X + 1))
    assert (value(session, "1")[0], value(session, 1)[0]) == (1.0, 2.0)


@pytest.mark.parametrize("name", ["name", 7])
def test_an_id_never_means_another_thing_later(session, name):
    run(session, Put(name, X), releases=(name,))
    assert failing(session, Put(name, X)).code == "id_in_use"
    assert failing(session, Fetch(name)).code == "released_id"
    assert failing(session, Call("neg", (X,), (name,))).code == "id_in_use"


def test_small_integers_may_come_in_any_order(session):
    run(session, Put(9, X), Put(3, X))
    assert failing(session, Fetch(5)).code == "unknown_id"
    run(session, Put(5, X))


def test_a_clients_own_ids_are_known_to_be_released_without_being_kept(session):
    client = session.attach()
    first = client.first_id
    assert first == client.client << CLIENT_BITS
    batch = Batch((Put(first, X), Put(first + 1, X)), (first,), client.client, 1, b"1")
    assert session.execute(batch).failure is None
    assert failing(session, Fetch(first)).code == "released_id"
    assert failing(session, Fetch(first + 2)).code == "unknown_id"
    assert session._released == set()


def test_releases_die_at_their_last_mention(session):
    """Two arrays at once would not fit: the first has to go before the third is made."""
    session = Session(memory_limit=9 * 1024)
    big = np.zeros(1024, np.float32)
    run(
        session,
        Put("a", big),
        Call("add", ("a", Literal(1.0)), ("b",)),
        Call("add", ("b", Literal(1.0)), ("c",)),
        Call("add", ("c", Literal(1.0)), ("d",)),
        Call("reduce_sum", ("d",), ("s",)),
        Fetch("s"),
        releases=("c", "b", "a"),
    )
    assert failing(session, Fetch("c")).code == "released_id"
    assert value(session, "d")[0] == 3.0


def test_without_the_release_the_same_does_not_fit():
    session = Session(memory_limit=9 * 1024)
    todo = [Put("a", np.zeros(1024, np.float32)), *(Call("add", (a, Literal(1.0)), (b,)) for a, b in ("ab", "bc"))]
    assert failing(session, *todo).code == "resource_exhausted"


def test_an_id_only_released_goes_at_once_and_an_unknown_one_is_no_matter(session):
    run(session, Put("a", X))
    run(session, releases=("a", "never was", 12345))
    assert failing(session, Fetch("a")).code == "released_id"
    assert failing(session, Fetch("never was")).code == "unknown_id"


def test_an_id_made_and_released_in_one_batch_and_a_failed_one(session):
    failing(session, Put("a", X), Call("nope", ("a",), ("b",)), Call("neg", ("b",), ("c",)), releases=("a", "b", "c"))
    assert failing(session, Fetch("a")).code == "released_id"
    assert failing(session, Fetch("b")).code == "released_id"  # the poison was released
    assert session.listing("value") == []


def test_the_array_itself_is_freed_at_the_release(session):
    array = np.ones(1000, np.float32)
    alive = weakref.ref(array)
    run(session, Put("a", array), MakeVariable("v", "a"))
    del array
    run(session, releases=("a",))
    gc.collect()
    assert alive() is not None  # the variable's
    run(session, Assign("v", np.zeros(1000, np.float32)))
    gc.collect()
    assert alive() is None


def test_a_tape_keeps_what_its_gradient_needs_after_the_names_are_gone(session):
    array = np.full(3, 2, np.float32)
    alive = weakref.ref(array)
    run(
        session,
        Put("x", array),
        TapeOpen("t"),
        TapeWatch("t", ("x",)),
        Call("mul", ("x", "x"), ("y",)),
        Call("exp", ("y",), ("z",)),
        releases=("y",),
    )
    del array
    (_,) = run(session, Gradient("t", ("z",), ("x",), ("g",)))
    np.testing.assert_allclose(value(session, "g"), np.full(3, 2 * 2 * np.exp(4.0)), rtol=1e-6)
    run(session, releases=("x",))
    gc.collect()
    assert alive() is None  # the tape has answered: nothing holds it any more


def test_releasing_a_tape_ends_its_recording(session):
    run(session, *watched(), releases=())
    assert len(session.context(0).tapes) == 1
    run(session, releases=("t",))
    assert session.context(0).tapes == []


# ------------------------------------------------------------------------------------------------------ after failures
def test_after_a_failure_no_value_is_made_but_structure_still_happens(session):
    run(session, MakeVariable("v", np.float32(1)), TapeOpen("t"))
    failure = failing(
        session,
        Put("a", X),
        Assign("v", np.float32(2)),
        Call("nope", ("a",), ("b",)),  # the first cause
        Assign("v", np.float32(3)),
        Put("c", X),
        TapePause("t"),
        TapeOpen("u"),
        TapeWatch("u", ("c", "b")),
        Call("other", ("b",), ("d",)),
        Gradient("t", ("b",), ("v",), ("g",)),
        Declare("Whatever"),
    )
    assert (failure.index, failure.code) == (2, "unknown_op")
    assert failure.versions == {"v": 1}
    assert value(session, "v") == 2
    assert value(session, "a").tolist() == X.tolist()
    for name in "bcdg":
        later = failing(session, Fetch(name))
        assert (later.code, later.message) == ("poisoned", failure.message)
    assert not session.describe("t")["recording"]
    assert not session.describe("t")["consumed"]
    assert session.describe("u")["recording"]
    assert "Whatever" in session.no_gradient


def test_a_failure_does_not_poison_what_its_id_names_already(session):
    run(session, Put("a", X))
    failing(session, Put("a", X + 1))
    assert value(session, "a").tolist() == X.tolist()


def test_without_poison_the_ids_stay_free(session):
    batch = Batch((Call("nope", (), ("a",)), Put("b", X)))
    assert session.execute(batch, poison=False).failure is not None
    run(session, Put("a", X), Put("b", X))


def test_a_defect_inside_an_op_ends_the_batch_and_not_the_session(session, monkeypatch):
    def broken(command):
        raise RuntimeError("a defect")

    monkeypatch.setitem(session._do, Part, broken)
    failure = failing(session, Part("a", "values", "b"))
    assert (failure.code, "RuntimeError: a defect" in failure.message) == ("internal", True)
    run(session, Put("x", X))


def test_memory_that_the_machine_does_not_have(session, monkeypatch):
    def exhausted(command):
        raise MemoryError("Unable to allocate 8 EiB")

    monkeypatch.setitem(session._do, Gradient, exhausted)
    failure = failing(session, Gradient("t", (), (), ()))
    assert (failure.code, "8 EiB" in failure.message) == ("resource_exhausted", True)


# -------------------------------------------------------------------------------------------------------- exactly once
def sent(session, client, seq, *todo, nonce=None):
    return session.execute(Batch(todo, (), client, seq, nonce or bytes([seq])))


def test_a_batch_sent_again_is_answered_again_and_not_executed_again(session):
    client = session.attach().client
    sent(session, client, 1, MakeVariable("v", np.float32(0)))
    first = sent(session, client, 2, Assign("v", np.float32(1), "add"), Fetch("v"))
    again = sent(session, client, 2, Assign("v", np.float32(1), "add"), Fetch("v"))
    assert again is first
    assert value(session, "v") == 1


def test_a_failed_batch_is_not_executed_again_either(session):
    client = session.attach().client
    sent(session, client, 1, MakeVariable("v", np.float32(0)))
    todo = (Assign("v", np.float32(1), "add"), Call("nope", (), ("y",)))
    assert sent(session, client, 2, *todo) is sent(session, client, 2, *todo)
    assert value(session, "v") == 1


def test_another_batch_of_the_same_number_is_a_conflict(session):
    client = session.attach().client
    sent(session, client, 1, Put("a", X))
    with pytest.raises(SequenceConflictError) as caught:
        sent(session, client, 1, Put("b", X), nonce=b"other")
    assert caught.value.details == {"expected": 2}
    assert failing(session, Fetch("b")).code == "unknown_id"


@pytest.mark.parametrize("seq", [0, 1, 4, 100])
def test_out_of_turn_is_refused_at_once(session, seq):
    client = session.attach().client
    sent(session, client, 1)
    sent(session, client, 2)
    with pytest.raises(OutOfTurnError) as caught:
        sent(session, client, seq, Put("a", X))
    assert caught.value.details == {"expected": 3}
    assert session.listing("value") == []


def test_the_first_batch_has_no_answer_to_repeat(session):
    client = session.attach().client
    with pytest.raises(OutOfTurnError):
        sent(session, client, 0)


def test_clients_count_for_themselves(session):
    a, b = session.attach(), session.attach()
    assert (a.client, b.client, a.seq, b.seq) == (1, 2, 1, 1)
    sent(session, a.client, 1)
    sent(session, b.client, 1)
    sent(session, a.client, 2)
    with pytest.raises(UnknownIdError, match="attach first"):
        sent(session, 3, 1)


# -------------------------------------------------------------------------------------------------- cancel and progress
def test_cancelled_between_two_commands(session):
    asked = iter([False, False, True])
    run(session, TapeOpen("t"))
    todo = (Put("a", X), Call("neg", ("a",), ("b",)), TapePause("t"), Call("neg", ("b",), ("c",)))
    answer = session.execute(Batch(todo), cancelled=lambda: next(asked))
    assert (answer.failure.index, answer.failure.code) == (2, "cancelled")
    assert value(session, "b").tolist() == [-1.0, -2.0, -3.0]
    assert not session.describe("t")["recording"]  # the command where it was noticed is structural, and happens
    assert failing(session, Fetch("c")).code == "poisoned"


def test_progress_is_told_now_and_then(session):
    told = []
    todo = [Put("x", X), *(Call("neg", ("x",), (i,)) for i in range(2500))]
    run(session, *todo, progress=lambda done, total: told.append((done, total)))
    assert told == [(1024, 2501), (2048, 2501)]


# ------------------------------------------------------------------------------------------------------------ contexts
def test_two_interleaved_contexts_do_not_record_each_other(session):
    run(
        session,
        Put("x", X),
        ContextSwitch("a"),
        TapeOpen("ta"),
        TapeWatch("ta", ("x",)),
        ContextSwitch("b"),
        TapeOpen("tb"),
        TapeWatch("tb", ("x",)),
        Call("mul", ("x", Literal(3.0)), ("in_b",)),
        ContextSwitch("a"),
        Call("mul", ("x", Literal(2.0)), ("in_a",)),
    )
    assert [session.describe(t)["ops"] for t in ("ta", "tb")] == [1, 1]
    asked = (Gradient(t, (y,), ("x",), (f"{t}{y}",)) for t in ("ta", "tb") for y in ("in_a", "in_b"))
    found = [session.execute(Batch((one,))).results for one in asked]
    kinds = [one[0].kinds[0] if one else "consumed" for one in found]
    assert kinds == ["dense", "consumed", "none", "consumed"]


def test_a_batch_begins_in_the_main_context(session):
    run(session, ContextSwitch("a"), TapeOpen("t"), Put("x", X), TapeWatch("t", ("x",)))
    run(session, Call("neg", ("x",), ("y",)))
    assert session.describe("t")["ops"] == 0
    run(session, ContextSwitch("a"), Call("neg", ("x",), ("z",)))
    assert session.describe("t")["ops"] == 1


def test_a_gradient_is_recorded_where_it_is_asked(session):
    run(
        session,
        Put("x", X),
        TapeOpen("outer"),
        TapeWatch("outer", ("x",)),
        TapeOpen("inner", True),
        TapeWatch("inner", ("x",)),
        Call("pow", ("x", Literal(3.0)), ("y",)),
        Gradient("inner", ("y",), ("x",), ("g",)),
        ContextSwitch("elsewhere"),
        Gradient("inner", ("y",), ("x",), ("unseen",)),
        ContextSwitch(0),
        TapePause("outer"),
        TapePause("inner"),
    )
    (kinds,) = run(session, Gradient("outer", ("g",), ("x",), ("h",)))
    assert kinds.kinds == ("dense",)
    np.testing.assert_allclose(value(session, "h"), 6 * X)


# -------------------------------------------------------------------------------------------------------------- purity
def test_the_same_batch_gives_the_same_bytes_anywhere():
    todo = (
        Put("x", np.linspace(-2, 2, 101, dtype=np.float32)),
        TapeOpen("t"),
        TapeWatch("t", ("x",)),
        Call("softmax", ("x",), ("p",)),
        Call("random_normal", (Literal(5), Literal(7)), ("noise",), {"shape": (101,), "dtype": "float32"}),
        Call("mul", ("p", "noise"), ("y",)),
        Gradient("t", ("y",), ("x",), ("g",)),
        *(Fetch(name) for name in ("p", "noise", "g")),
    )
    answers = [run(Session(), *todo) for _ in range(2)]
    arrays = [[one.array.tobytes() for one in answer if isinstance(one, Fetched)] for answer in answers]
    assert arrays[0] == arrays[1]
    assert len(arrays[0]) == 3


def test_looking_at_what_is_not_there(session):
    run(session, Put("a", X), releases=("a",))
    with pytest.raises(ReleasedIdError):
        session.describe("a")
    failing(session, Call("nope", (), ("b",)))
    with pytest.raises(PoisonedError, match="unknown op 'nope'"):
        session.describe("b")


def test_kinds_come_with_every_gradient(session):
    results = run(session, *watched(Call("floor", ("x",), ("y",))), Gradient("t", ("y",), ("x",), ("g",)))
    assert results == (Kinds(4, ("none",)),)
