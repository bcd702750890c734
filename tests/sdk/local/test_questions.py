"""The table of questions over many cotangents: it has every command of that kind, and each question's own fields."""

from teletape.core.derivatives import questions, sparse_matrix
from teletape.core.derivatives.questions import Question
from teletape_engine.commands import COMMANDS, schema

TABLE = [question for question in vars(questions).values() if isinstance(question, Question)]


def test_every_command_that_takes_traced_gradients_is_in_the_table() -> None:
    sparse = {question.command.verb for question in (sparse_matrix._JACOBIAN, sparse_matrix._HESSIAN)}
    over_many = {verb for verb in COMMANDS if "custom_gradients" in schema.fields(verb)} - sparse
    assert {question.command.verb for question in TABLE} == over_many
    assert len(TABLE) == len(over_many)
