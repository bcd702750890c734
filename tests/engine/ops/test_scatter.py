"""Assignments to a part of a variable: each mode, in place if nothing else has the array, and what it refuses."""

import re
import tracemalloc

import numpy as np
import pytest
from driving import failing, run, value

from teletape_engine.commands import Assign, Batch, Call, Constant, Fetch, Gradient, MakeVariable, TapeOpen
from teletape_engine.ops.assign import MODES, PLACES, ROWS, check_cut, cut_of, how_of
from teletape_engine.recording.values import Literal
from teletape_engine.session.session import Session

TABLE = np.arange(12, dtype=np.float64).reshape(4, 3)
PLAIN = {
    "update": lambda old, new: new,
    "add": lambda old, new: old + new,
    "sub": lambda old, new: old - new,
    "mul": lambda old, new: old * new,
    "div": lambda old, new: old / new,
    "min": min,
    "max": max,
}


def by_hand(table, ids, rows, how):
    """One number after the other."""
    table = table.copy()
    for place, row in zip(ids, rows, strict=True):
        for at in range(table.shape[1]):
            table[place, at] = PLAIN[how](table[place, at], row[at])
    return table


def table(values=TABLE):
    session = Session()
    run(session, MakeVariable("v", np.array(values)))
    return session


@pytest.mark.parametrize("ids", [[2, 0], [1, 1, 3], [0] * 30 + [2] * 5, []], ids=["once", "twice", "often", "none"])
@pytest.mark.parametrize("mode", ROWS)
def test_rows(mode, ids):
    session, rows = table(), np.random.default_rng(1).uniform(0.5, 1.5, (len(ids), 3))
    run(session, Assign("v", rows, mode, np.array(ids, np.int32)))
    np.testing.assert_allclose(value(session, "v"), by_hand(TABLE, ids, rows, how_of(mode)), rtol=1e-12)
    assert session.describe("v")["version"] == 1


@pytest.mark.parametrize("mode", PLACES)
def test_places(mode):
    places, numbers = np.array([[0, 1], [3, 2], [0, 1]]), np.array([5.0, -1.0, 2.5])
    session = table()
    run(session, Assign("v", numbers, mode, places))
    flat = by_hand(TABLE.reshape(12, 1), [1, 11, 1], numbers[:, None], how_of(mode))
    np.testing.assert_array_equal(value(session, "v"), flat.reshape(4, 3))


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_places_are_counted_along_so_many_axes(depth):
    session, places = table(), np.zeros((2, depth), np.int64)
    rows = np.ones((2, *TABLE.shape[depth:]))
    run(session, Assign("v", rows, "scatter_nd_add", places))
    expected = TABLE.copy()
    expected[(0,) * depth] += 2
    np.testing.assert_array_equal(value(session, "v"), expected)


@pytest.mark.parametrize(
    "index", [(1,), ((None, None, None), 2), ((None, None, -2),), ("...", (1, None, None)), (None, -1), ((3, 1, None),)]
)
def test_a_slice(index):
    session = table()
    key = tuple(slice(*item) if isinstance(item, tuple) else ... if item == "..." else item for item in index)
    expected = TABLE.copy()
    cut = cut_of(TABLE.shape, index)
    numbers = np.arange(np.prod([n for _, _, n in cut]), dtype=np.float64) + 100
    expected[key] = numbers.reshape(expected[key].shape)
    run(session, Assign("v", numbers.reshape([n for _, _, n in cut]), "slice", np.array(cut)))
    np.testing.assert_array_equal(value(session, "v"), expected)


def test_integers_are_divided_towards_zero():
    session = Session()
    run(session, MakeVariable("v", np.array([[7], [-7], [7], [-8]])))
    run(session, Assign("v", np.array([[2], [2], [-2], [2]]), "scatter_div", np.arange(4)))
    np.testing.assert_array_equal(value(session, "v"), [[3], [-3], [-3], [-4]])


def test_one_number_for_all_rows():
    session = table()
    run(session, Assign("v", Literal(1), "scatter_add", np.array([0, 2, 0])))
    np.testing.assert_array_equal(value(session, "v") - TABLE, [[2.0] * 3, [0.0] * 3, [1.0] * 3, [0.0] * 3])


# ---------------------------------------------------------------------------------------------------- who else sees it
BIG = np.zeros((200_000, 8), np.float32)
ONE = Assign("v", np.ones((1, 8), np.float32), "scatter_add", np.array([7]))


def peak(session, *todo):
    """Bytes that the commands take at their peak, over what there was."""
    tracemalloc.start()
    try:
        run(session, *todo)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_after_one_copy_a_table_is_changed_where_it_stands():
    session, sent = Session(), BIG.copy()
    run(session, MakeVariable("v", sent))
    assert peak(session, ONE) > BIG.nbytes
    assert not sent.any()
    assert peak(session, *[ONE] * 50) < 200_000
    assert value(session, "v")[7, 0] == 51


@pytest.mark.parametrize(
    "reader",
    [
        (Call("identity", ("v",), ("old",)),),
        (TapeOpen("t"), Call("identity", ("v",), ("old",))),
        (MakeVariable("w", "v"), Call("identity", ("w",), ("old",))),
        (Assign("v", "x"), Call("identity", ("x",), ("old",))),
        (Call("reshape", ("v",), ("old",), {"shape": [12]}),),
        (Call("strided_slice", ("v",), ("old",), {"index": [[0, 2, 1]]}),),
    ],
)
def test_what_was_read_before_stays(reader):
    session = table()
    run(
        session,
        Constant("x", TABLE + 1),
        Assign("v", TABLE * 2),
        Assign("v", np.ones((1, 3)), "scatter_add", np.array([0])),
    )
    run(session, *reader)
    before = value(session, "old").copy()
    run(session, Assign("v", np.full((4, 3), 50.0), "scatter_update", np.arange(4)))
    np.testing.assert_array_equal(value(session, "old"), before)
    np.testing.assert_array_equal(value(session, "v"), np.full((4, 3), 50.0))


def test_a_fetched_answer_stays():
    session = table()
    run(session, Assign("v", np.ones((1, 3)), "scatter_add", np.array([0])))
    before = value(session, "v")
    retained = before.copy()
    run(session, Assign("v", np.ones((1, 3)), "scatter_add", np.array([0])))
    np.testing.assert_array_equal(before, retained)


def test_a_tape_keeps_the_numbers_that_it_needs():
    session = table()
    run(session, Assign("v", np.ones((4, 3)), "scatter_add", np.arange(4)))
    run(
        session, TapeOpen("t"), Call("square", ("v",), ("y",)),
        Assign("v", np.zeros((4, 3)), "scatter_mul", np.arange(4)),
        Gradient("t", ("y",), ("v",), ("g",)),
    )  # fmt: skip
    np.testing.assert_array_equal(value(session, "g"), 2 * (TABLE + 1))


def test_a_failed_one_changes_nothing():
    session = table()
    run(session, Assign("v", np.ones((4, 3)), "scatter_add", np.arange(4)))
    failing(session, Assign("v", np.ones((2, 3)), "scatter_add", np.array([0, 9])))
    np.testing.assert_array_equal(value(session, "v"), TABLE + 1)
    assert session.describe("v")["version"] == 1


def test_a_copy_is_priced():
    session = Session(memory_limit=300_000)
    run(session, MakeVariable("v", np.zeros((20_000, 2), np.float32)))
    run(session, Assign("v", np.ones((1, 2), np.float32), "scatter_add", np.array([3])))
    failure = failing(
        session, TapeOpen("t"), Call("square", ("v",), ("y",)),
        Assign("v", np.ones((1, 2), np.float32), "scatter_add", np.array([3])),
    )  # fmt: skip
    assert failure.code == "resource_exhausted"


# -------------------------------------------------------------------------------------------------------------- refused
ROW = np.ones((1, 3))
AT = np.array([0])


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (Assign("v", ROW, "scatter_add", np.array([4])), r"indices\[0\] = 4 is not in \[0, 4\)"),
        (Assign("v", ROW, "scatter_add", np.array([-1])), r"indices\[0\] = -1 is not in \[0, 4\)"),
        (Assign("v", np.ones((1, 2)), "scatter_add", AT), r"Must have updates.shape = .* got updates.shape \[1,2\]"),
        (
            Assign("v", ROW, "scatter_add", np.array([0, 1])),
            r"indices \(\[2\]\) must be a prefix .* updates \(\[1,3\]\)",
        ),
        (Assign("v", ROW, "scatter_add", np.array([0.0])), "'Tindices' of float64 is not in the list"),
        (Assign("v", ROW.astype(np.float32), "scatter_add", AT), "a variable of dtype float64, found float32"),
        (Assign("v", ROW, "scatter_add"), "mode 'scatter_add' needs indices"),
        (Assign("v", ROW, "scatter_pow", AT), "unknown mode 'scatter_pow'; it must be one of set, add, sub, scatter_"),
        (Assign("v", ROW, "set", AT), "mode 'set' changes the whole and takes no indices"),
        (Assign("v", np.ones(1), "scatter_nd_add", np.array([[4, 0]])), r"\[4, 0\] does not index into shape \[4,3\]"),
        (Assign("v", np.ones(1), "scatter_nd_add", np.array([[0, 0, 0]])), "has between 0 and 2 entries"),
        (Assign("v", np.ones(2), "scatter_nd_add", np.array([[0, 0]])), r"take updates of shape \[1\]"),
        (Assign("v", ROW, "slice", np.array([[0, 1, 1]])), r"indices of shape \[2, 3\] .* found \[1,3\]"),
        (Assign("v", ROW, "slice", np.array([[3, 1, 2], [0, 1, 3]])), "axis 0 has length 4; 2 entries from 3 by 1"),
        (Assign("v", ROW, "slice", np.array([[0, 0, 2], [0, 1, 3]])), "axis 0 has length 4"),
        (Assign("v", ROW, "slice", np.array([[0, 1, 1], [0, 1, 2]])), r"Cannot broadcast input shape \[1,3\] into"),
        (Assign("b", np.array([True]), "scatter_add", AT), "mode 'scatter_add' does not take dtype bool"),
        (Assign("n", np.array([0]), "scatter_div", AT), "updates must not contain 0"),
        (Assign("s", np.ones(1, np.float32), "scatter_add", AT), "Must have updates.shape"),
    ],
)
def test_what_does_not_fit_says_so(command, text):
    session = table()
    run(session, MakeVariable("b", np.array([True])), MakeVariable("n", np.array([3])), MakeVariable("s", Literal(1.0)))
    assert re.search(text, failing(session, command).message)


def test_every_mode_is_named_once():
    assert len(set(MODES)) == len(MODES)
    assert {how_of(mode) for mode in (*ROWS, *PLACES)} == set(PLAIN)


def test_an_empty_part_takes_anything_that_broadcasts():
    assert check_cut((4,), (1,), [[2, 1, 0]]) == (slice(0, 0),)


def test_slices_of_a_gradient_go_into_an_update_without_leaving():
    session = table()
    answer = session.execute(
        Batch(
            (
                TapeOpen("t"), Constant("ids", np.array([1, 1])), Call("gather", ("v", "ids"), ("y",)),
                Gradient("t", ("y",), ("v",), ("g",)), Fetch("g"),
            )
        )
    )  # fmt: skip
    assert answer.failure is None
    rows = answer.results[-1].array
    run(session, Assign("v", rows.values, "scatter_sub", rows.indices))
    np.testing.assert_array_equal(value(session, "v")[1], TABLE[1] - 2)
