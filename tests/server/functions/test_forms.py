"""Questions about a function that come again with other numbers are answered as if each were the first."""

import gc
import json
import re
from collections.abc import Mapping
from typing import Any
from weakref import ref

import numpy as np
import pytest
from function_rows import answer_to, known_forms, text_to
from rest_client import op

from teletape_engine.session.session import Session
from teletape_server.handlers.forms.forms import forms_of
from teletape_wire.safetensors.layout import SAFETENSORS_TYPE
from teletape_wire.safetensors.writer import write_file

TIMES = 6  #: More than it takes to know a form, and to run it as a plan.
TWO: dict[str, Any] = {
    "id": "two",
    "inputs": ["x", "w"],
    "steps": [op("mul", "x", "w", to="a"), op("exp", "a", to="e"), op("reduce_sum", "e", to="b")],
    "outputs": ["a", "b"],
}
FUNCTIONS: tuple[dict[str, Any], ...] = (
    {"id": "loss", "text": "sum((x @ w - y)**2)"},
    TWO,
    {
        "id": "count",
        "inputs": ["v", "x"],
        "steps": [
            {"do": "assign", "variable": "v", "value": "x", "mode": "add"},
            op("mul", "v", "x", to="y"),
        ],
        "outputs": ["y"],
    },
)
MAKES: list[tuple[str, Mapping[str, Any]]] = [
    ("variables-create", {"id": "v", "value": [1.5, 2.5]}),
    ("variables-create", {"id": "w2", "value": {"dtype": "float64", "data": [0.5, 1.5]}}),
]


def session_with_functions() -> Session:
    session = Session()
    for method, body in (*[("functions-create", body) for body in FUNCTIONS], *MAKES):
        answer = answer_to(session, method, body)
        assert isinstance(answer, dict), answer
    return session


def numbers(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape).round(3).tolist()


def typed(dtype: str, data: Any) -> Mapping[str, Any]:
    return {"dtype": dtype, "data": data}


QUESTIONS: dict[str, tuple[str, str, Any]] = {
    "in order": ("value_and_gradient", "loss", lambda n: {"inputs": [numbers(n, 3, 2), numbers(n, 2), numbers(n, 3)]}),
    "by name": (
        "gradient",
        "loss",
        lambda n: {"inputs": {"y": numbers(n, 3), "w": numbers(n, 2), "x": numbers(n, 3, 2)}, "sources": ["w"]},
    ),
    "with dtypes": (
        "value_and_gradient",
        "loss",
        lambda n: {"inputs": [typed("float64", numbers(n, 3, 2)), numbers(n, 2), typed("float64", numbers(n, 3))]},
    ),
    "of a variable": (
        "value_and_gradient",
        "loss",
        lambda n: {"inputs": [numbers(n, 3, 2), "v", numbers(n, 3)], "sources": ["v"]},
    ),
    "of numbers": ("value_and_gradient", "two", lambda n: {"inputs": {"x": n + 0.5, "w": n}, "sources": ["x"]}),
    "of whole and other numbers": ("gradient", "two", lambda n: {"inputs": [n if n % 2 else n + 0.5, numbers(n, 2)]}),
    "of one id twice": ("gradient", "two", lambda n: {"inputs": ["v", "v"], "targets": ["b"]}),
    "with weights": (
        "vjp",
        "two",
        lambda n: {"inputs": [numbers(n, 2), "v"], "output_gradients": [typed("float32", numbers(n, 2)), n + 0.5]},
    ),
    "of other lengths": ("jacobian", "two", lambda n: {"inputs": [numbers(n, 1 + n % 2), 2.5], "targets": ["a"]}),
    "of second order": ("hessian", "two", lambda n: {"inputs": [numbers(n, 2), numbers(n + 1, 2)], "targets": ["b"]}),
    "with vectors": (
        "hvp",
        "two",
        lambda n: {
            "inputs": [numbers(n, 2), 1.5],
            "targets": ["b"],
            "sources": ["x"],
            "vectors": [typed("float32", numbers(n, 2))],
        },
    ),
    "that assigns": ("value_and_gradient", "count", lambda n: {"inputs": ["v", [n + 0.5, 1.5]], "sources": ["v"]}),
    "that keeps": (
        "gradient",
        "two",
        lambda n: {"inputs": [numbers(n, 2), 1.5], "outputs": ["g", None], "replace": True},
    ),
    "that fails in between": (
        "gradient",
        "loss",
        lambda n: {"inputs": [numbers(n, 3, 2), numbers(n, 2 + (n == 3)), 0.5]},
    ),
    "that has no such source": ("gradient", "two", lambda n: {"inputs": [numbers(n, 2), 1.5], "sources": [f"x{n}"]}),
}


FAIL = {("that fails in between", 3)}


@pytest.mark.parametrize("question", QUESTIONS)
def test_each_is_answered_as_if_it_were_the_first(question: str) -> None:
    verb, function, body = QUESTIONS[question]
    session = session_with_functions()
    for n in range(TIMES):
        first = session_with_functions()
        if question == "that assigns":
            for before in range(n):
                answer_to(first, "functions-gradient", {"inputs": ["v", [before + 0.5, 1.5]]}, id="count")
        answer = answer_to(session, f"functions-{verb}", body(n), id=function)
        assert answer == answer_to(first, f"functions-{verb}", body(n), id=function)
        assert isinstance(answer, dict) == ((question, n) not in FAIL and question != "that has no such source"), answer


def test_a_form_is_known_when_it_has_come_twice_and_keeps_no_numbers() -> None:
    session = session_with_functions()
    for expected in (0, 1, 1):
        answer_to(
            session, "functions-gradient", {"inputs": [numbers(1, 3, 2), numbers(1, 2), numbers(1, 3)]}, id="loss"
        )
        assert len(known_forms(session)) == expected
    [form] = known_forms(session)
    assert form._contents.tensors == form._contents.numbers == ()
    assert len(form._tensors) == 3


def test_an_empty_list_of_weights_is_refused_also_where_none_at_all_is_known() -> None:
    session = session_with_functions()
    body = {"inputs": [[1.0, 2.0], "v"]}
    for _ in range(TIMES):
        assert isinstance(answer_to(session, "functions-gradient", body, id="two"), dict)
    code, message = answer_to(session, "functions-gradient", {**body, "output_gradients": []}, id="two")
    assert (code, message) == answer_to(
        session_with_functions(), "functions-gradient", {**body, "output_gradients": []}, id="two"
    )
    assert code == "invalid_request"


def test_a_form_belongs_to_the_function_and_to_what_its_ids_name() -> None:
    session = session_with_functions()
    body = {"inputs": {"x": [1.0, 2.0], "w": "w2"}, "sources": ["x"], "targets": ["b"]}
    for _ in range(TIMES):
        before = answer_to(session, "functions-value_and_gradient", body, id="two")
    assert before["derivatives"][0]["value"]["dtype"] == "float64"
    answer_to(session, "variables-create", {"id": "w2", "value": [0.5, 1.5], "replace": True})
    assert (
        answer_to(session, "functions-value_and_gradient", body, id="two")["derivatives"][0]["value"]["dtype"]
        == "float32"
    )
    answer_to(
        session,
        "functions-create",
        {**TWO, "steps": [*TWO["steps"][:1], op("reduce_sum", "a", to="b")], "replace": True},
    )
    after = answer_to(session, "functions-value_and_gradient", body, id="two")
    assert after["derivatives"][0]["value"]["data"] == [0.5, 1.5]
    answer_to(session, "functions-delete", {}, id="two")
    code, _ = answer_to(session, "functions-value_and_gradient", body, id="two")
    assert code == "released_id"


@pytest.mark.parametrize("end", ["functions-delete", "functions-create"])
def test_a_form_does_not_keep_its_function(end: str) -> None:
    session = session_with_functions()
    for _ in range(TIMES):
        answer_to(session, "functions-value_and_gradient", {"inputs": [[1.0, 2.0], 1.5]}, id="two")
    assert known_forms(session)
    function = ref(session.kind("two"))
    answer_to(session, end, {**TWO, "replace": True} if end == "functions-create" else {}, id="two")
    session._state.repetitions.forget()  # as a full session does
    gc.collect()
    assert function() is None


def test_a_question_of_a_known_form_that_fails_says_what_the_first_would() -> None:
    """It runs on numbers that its function refuses; the next one finds its ids free."""
    session = session_with_functions()
    steps = [op("gather", "x", "i", to="y")]
    answer_to(session, "functions-create", {"id": "pick", "inputs": ["x", "i"], "steps": steps, "outputs": ["y"]})

    def pick(session: Session, index: int) -> Any:
        inputs = [[1.0, 2.0], typed("int32", [index])]
        return answer_to(session, "functions-value_and_gradient", {"inputs": inputs, "sources": ["x"]}, id="pick")

    answers = [pick(session, index) for index in (0, 1, 0, 7, 1, 0, 7, 0)]
    code, message = answers[3]
    assert code == "invalid_argument"
    assert "7" in message
    assert answers[6] == answers[3]
    fresh = session_with_functions()
    answer_to(fresh, "functions-create", {"id": "pick", "inputs": ["x", "i"], "steps": steps, "outputs": ["y"]})
    assert answers[3] == pick(fresh, 7)
    assert answers[7] == answers[5] == answers[2] == answers[0]


#: What a caller may write in the place of a list or number.
INSTEAD = (
    *("null", "true", "[]", "{}", '"NaN"', '["NaN", 1.5]', '"v"', "NaN", "Infinity", "[1.5, null]", "[1.5, true]"),
    *("-0", "[-0.0, 2.5]", "01", "1.", "[1.5 2.5]", "[[1.5], [2.5, 3.5]]", "[1.5, [2.5]]", "[1.5, 2.5, 3.5]", "1e400"),
    *(
        "9007199254740993",
        "[9007199254740993, 1]",
        "18446744073709551617",
        "[18446744073709551617, 0.5]",
        "[1e38, 1e39]",
    ),
    *("[3000000000, 1]", "[[[[[[[[[[1.5]]]]]]]]]]", '{"data": [1, 2]}', '{"dtype": "float64", "data": [0.25, 0.1]}'),
    *('{"dtype": "int32", "data": [1, 2]}', '{"dtype": "int8", "data": [300, 2]}', '{"number": 1.5}', "[0.5,\n 1.5 ]"),
    *('{"dtype": "float64", "shape": [2], "data": [0.5, 1.5]}', '{"dtype": "float16", "data": [70000, 1]}'),
    *('{"dtype": "float32", "shape": [1, 2], "data": [0.5, 1.5]}', '"x", "x": 1', "]", "\\u0000", "\x00"),
)
#: Bodies of which `{}` are such places.
TEMPLATES = (
    '{"inputs": {"x": {}, "w": {}}, "sources": ["x"], "targets": ["b"]}',
    '{"inputs": [{}, {}], "fetch": ["a"]}',
    '{"inputs": {"x": {"dtype": "float64", "shape": [2], "data": {}}, "w": {"data": {}}}}',
    '{"inputs": {"x": {}, "w": "v"}, "output_gradients": [{}, null], "targets": ["a", "b"]}',
    '{"inputs": [{}, [1, 2]], "sources": ["w, [1, 2]", {}]}',
)


@pytest.mark.parametrize("template", TEMPLATES)
def test_any_body_is_answered_in_the_same_bytes_as_without_forms(template: str) -> None:
    """Bodies of a form that is known, and near misses of it: numbers of other shapes and kinds, and what is no JSON."""
    session, general = session_with_functions(), session_with_functions()
    random = np.random.default_rng(len(template))
    answered = 0
    for number in range(160):
        values = [json.dumps(numbers(number + at, 2)) for at in range(2)]
        if number % 4 == 3:
            values[random.integers(2)] = str(random.choice(INSTEAD))
        first, second, third = template.split("{}") if template.count("{}") == 2 else (template, "", "")
        body = f"{first}{values[0]}{second}{values[1]}{third}".encode()
        verb = "functions-vjp" if "output_gradients" in template else "functions-value_and_gradient"
        forms_of(general).__init__()  # type: ignore[misc]  # it knows none
        answer = text_to(session, verb, body, id="two")
        wanted = text_to(general, verb, body, id="two")
        if isinstance(answer, bytes) and isinstance(wanted, bytes):
            answer, wanted = (re.sub(rb',"bytes_in_use":\d+', b"", text) for text in (answer, wanted))
            answered += 1
        assert answer == wanted, body
    assert answered >= 100 or "w, [1" in template
    assert known_forms(session) or "w, [1" in template
    assert not known_forms(general)


def test_named_tensors_of_a_known_header_are_answered_in_the_same_bytes() -> None:
    session, general = session_with_functions(), session_with_functions()
    for number in range(12):
        shape = (2, 1 + number % 2)
        tensors = {name: np.asarray(numbers(number + at, *shape), np.float32) for at, name in enumerate("xw")}
        metadata = {"request": json.dumps({"sources": ["x"]})}
        body = b"".join(map(bytes, write_file({f"inputs/{name}": tensors[name] for name in "xw"}, metadata)))
        body = body[: len(body) - number // 10]  # the last ones are cut
        forms_of(general).__init__()  # type: ignore[misc]  # it knows none
        answers = [
            text_to(each, "functions-value_and_gradient", body, SAFETENSORS_TYPE, id="two")
            for each in (session, general)
        ]
        texts = [re.sub(rb'"bytes_in_use":\d+', b"", text) if isinstance(text, bytes) else text for text in answers]
        assert texts[0] == texts[1]
        assert isinstance(texts[0], bytes) == (number < 10)
    assert len(known_forms(session)) == 2


RUNS = (
    {
        "commands": [
            {"do": "constant", "id": "x", "value": {"dtype": "float64", "data": "A"}},
            {"do": "tape.open", "id": "t"},
            {"do": "variable", "id": "w", "value": "B"},
            {"do": "op", "op": "mul", "inputs": ["x", "w"], "outputs": ["p"]},
            {"do": "op", "op": "mul", "inputs": ["p", 2.5], "outputs": ["q"]},
            {"do": "op", "op": "reduce_sum", "inputs": ["q"], "attrs": {"axis": [0]}, "outputs": ["l"]},
            {"do": "gradient", "tape": "t", "targets": ["l"], "sources": ["w"], "outputs": ["g"]},
        ],
        "fetch": ["l", "g", "w"],
        "dtype": "float64",
    },
    {
        "tensors": {"x": "A"},
        "commands": [
            {"do": "variable", "id": "v", "value": "B", "trainable": False},
            {"do": "variable", "id": "w", "value": [0.5, 1.5]},
            {"do": "tape.open", "id": "t", "persistent": True},
            {"do": "op", "op": "mul", "inputs": ["x", "v"], "outputs": ["p"]},
            {"do": "op", "op": "sub", "inputs": ["p", "w"], "outputs": ["l"]},
            {"do": "fetch", "id": "p"},
            {"do": "gradient", "tape": "t", "targets": ["l"], "sources": ["w", "v"], "outputs": ["g", "h"]},
        ],
        "fetch": ["g", "h"],
    },
    {
        "commands": [
            {"do": "variable", "id": "w", "value": "A"},
            {"do": "assign", "variable": "w", "value": "B", "mode": "add"},
            {"do": "op", "op": "log", "inputs": ["w"], "outputs": ["l"]},
        ],
        "fetch": ["l"],
    },
)


@pytest.mark.parametrize("run", RUNS)
def test_any_run_is_answered_in_the_same_bytes_as_without_forms(run: Mapping[str, Any]) -> None:
    """Each begins anew: nothing of one is in the next, and what fails is said of the caller's own commands."""
    session, random = Session(), np.random.default_rng(0)
    template = json.dumps(run)
    answered = 0
    for number in range(100):
        values = [json.dumps(numbers(number + at, 2)) for at in range(2)]
        if number % 4 == 3:
            values[random.integers(2)] = str(random.choice(INSTEAD))
        body = template.replace('"A"', values[0]).replace('"B"', values[1]).encode()
        answer = text_to(session, "run", body)
        session.renew()
        assert not session.listing("tensor", "variable", "tape", "function")
        assert answer == text_to(Session(), "run", body), body
        answered += isinstance(answer, bytes)
    assert answered >= 75
    assert any(form is not None for form in forms_of(session)._forms.values()) == (run is RUNS[0])


def test_a_run_of_a_known_form_that_fails_is_said_as_the_first_would() -> None:
    session = Session()
    for index in (0, 1, 0, 7, 1, 0, 7, 0):
        steps = [
            {"do": "op", "op": "gather", "inputs": ["x", "i"], "outputs": ["y"]},
            *({"do": "op", "op": "exp", "inputs": [name], "outputs": [name * 2]} for name in ("y", "yy", "yyyy")),
        ]
        tensors = {"x": typed("float32", [1.5, 2.5]), "i": typed("int32", [index])}
        body = json.dumps({"tensors": tensors, "commands": steps, "fetch": ["y"]}).encode()
        answer = text_to(session, "run", body)
        session.renew()
        assert answer == text_to(Session(), "run", body)
        assert isinstance(answer, bytes) == (index < 7)


def test_an_answer_says_the_bytes_that_the_session_has() -> None:
    session = Session("cpu", memory_limit=1 << 30)
    answer_to(session, "functions-create", FUNCTIONS[0])
    counts = []
    for number in range(TIMES * 2):
        body = {"inputs": {"x": [[number, 2.5]], "w": [1.5, 0.5], "y": [0.5]}, "sources": ["w"]}
        text = text_to(session, "functions-value_and_gradient", json.dumps(body).encode(), id="loss")
        assert isinstance(text, bytes)
        counts.append(json.loads(text)["bytes_in_use"])
    assert counts[-1] == session.bytes_in_use() > 0
