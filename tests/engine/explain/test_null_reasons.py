"""The reasons of many nulls in one answer: the tape's graph is searched once, not once for each source."""

import numpy as np
import pytest

from counting import calls
from teletape_engine.commands import Batch, Command, schema
from teletape_engine.commands.results import Kinds
from teletape_engine.session.session import Session

OPS = 300


def command(verb: str, **fields: object) -> Command:
    return schema.make(verb, fields)


def work(sources: int, *, connected: bool) -> int:
    """The calls that it takes to explain the nulls of these sources of a long computation that ends in round."""
    session = Session()
    ids = [f"x{i}" for i in range(sources)]
    commands = [command("variable", id=id, value=np.ones(2, np.float32)) for id in ids]
    commands.append(command("tape.open", id="t"))
    for i in range(OPS):
        other = ids[i % sources] if connected else "x0"
        commands.append(command("op", op="add", inputs=[f"y{i - 1}" if i else "x0", other], outputs=[f"y{i}"]))
    commands.append(command("op", op="round", inputs=[f"y{OPS - 1}"], outputs=["y"]))
    assert session.execute(Batch(tuple(commands))).failure is None
    question = Batch((command("gradient", tape="t", targets=["y"], sources=ids, outputs=[None] * sources),))
    answers = []
    count = calls(lambda: answers.append(session.execute(question, explain=True)))
    [kinds] = answers[0].results
    assert isinstance(kinds, Kinds)
    reasons = [why["code"] for why in kinds.why if why is not None]
    assert reasons[0] == "non_differentiable_op"
    assert len(reasons) == sources
    return count


@pytest.mark.parametrize(("connected", "most"), [(False, 100), (True, 8 * OPS)])
def test_one_more_source_costs_less_than_a_search_of_the_tape(connected: bool, most: int) -> None:
    """A search takes about 20 calls for each op; to follow one path that was found takes a few."""
    assert (work(40, connected=connected) - work(20, connected=connected)) / 20 < most
