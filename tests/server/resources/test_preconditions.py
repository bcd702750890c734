"""ETags of variables: no update is lost, nothing is sent twice, and each condition says what is wrong with it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest
from rest_client import RAW, Rest

from serving import Program, ok, problem
from teletape_engine.commands import Assign

FORMS = {
    "the first elements": {"Accept": "application/json", "Accept-Encoding": "identity"},
    "gzip": {"Accept": "application/json", "Accept-Encoding": "gzip"},
    "bytes": {"Accept": RAW, "Accept-Encoding": "identity"},
}


@pytest.fixture
def rest(rest: Rest) -> Rest:
    """A session with a variable w."""
    rest.create("variables", {"id": "w", "value": [1.5] * 2000})
    return rest


def tag(answer: httpx.Response) -> str:
    return ok(answer).headers["etag"]


def put(rest: Rest, value: float, **conditions: str) -> httpx.Response:
    headers = {name.replace("_", "-"): text for name, text in conditions.items()}
    return rest.put("variables/w", {"value": [value] * 2000}, **headers)


def test_every_answer_about_a_variable_has_the_tag_of_its_version(rest: Rest) -> None:
    created = rest.post("variables", {"id": "v", "value": 1.5})
    assert tag(created) == tag(rest.get("variables/v")) == tag(rest.http.head(f"{rest.path}/variables/v"))
    assigned = rest.put("variables/v", {"value": 2.5})
    assert tag(assigned) == tag(rest.get("variables/v")) != tag(created)
    assert tag(rest.get("variables/v")) != tag(rest.get("variables/v?full=true"))


@pytest.mark.parametrize("form", FORMS)
def test_a_version_that_the_caller_has_is_not_sent_again(rest: Rest, form: str) -> None:
    path, headers = f"{rest.path}/variables/w", FORMS[form]
    own = tag(rest.http.get(path, headers=headers))
    assert len({tag(rest.http.get(path, headers=other)) for other in FORMS.values()}) == len(FORMS)
    for known in (own, f'"other" , {own}', f"W/{own}", "*"):
        again = rest.http.get(path, headers=headers | {"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b""), known
        assert again.headers["etag"] == own.replace("-gzip", ""), "the tag of the form that is not sent"
    ok(put(rest, 2.5))
    assert ok(rest.http.get(path, headers=headers | {"If-None-Match": own})).content


@pytest.mark.parametrize("form", FORMS)
def test_an_update_of_an_old_version_is_refused(rest: Rest, form: str) -> None:
    old = tag(rest.http.get(f"{rest.path}/variables/w", headers=FORMS[form]))
    new = tag(put(rest, 2.5, If_Match=old))
    refusal = problem(put(rest, 3.5, If_Match=old), 412, "precondition_failed")
    assert "its version is now 1" in refusal["detail"]
    assert refusal["details"]["etag"] == new
    assert ok(rest.get("variables/w")).json()["value"]["data"][0] == 2.5
    ok(put(rest, 3.5, If_Match=f'"other", {refusal["details"]["etag"]}'))
    ok(put(rest, 4.5, If_Match="*"))
    problem(put(rest, 5.5, If_Match=f"W/{tag(rest.get('variables/w'))}"), 412, "precondition_failed")


def test_a_deletion_may_have_a_condition_too(rest: Rest) -> None:
    path, old = f"{rest.path}/variables/w", tag(rest.get("variables/w"))
    new = tag(put(rest, 2.5))
    problem(rest.http.delete(path, headers={"If-Match": old}), 412, "precondition_failed")
    ok(rest.http.delete(path, headers={"If-Match": new}))
    problem(rest.http.delete(path, headers={"If-Match": new}), 410, "released_id")


def test_a_put_that_must_not_meet_a_version(rest: Rest) -> None:
    old = tag(rest.get("variables/w"))
    for unwanted in (old, "*"):
        problem(put(rest, 2.5, If_None_Match=unwanted), 412, "precondition_failed")
    ok(put(rest, 2.5, If_None_Match='"other"'))


def test_an_assignment_by_a_frame_makes_a_new_version_as_well(rest: Rest) -> None:
    old = tag(rest.get("variables/w"))
    Program(rest.http, rest.session).run(Assign("w", np.zeros(2000, np.float32)))
    problem(put(rest, 2.5, If_Match=old), 412, "precondition_failed")


def test_another_variable_never_has_an_old_tag(http: httpx.Client) -> None:
    """Not in a new session of the same name, and not if all that was created before is the same."""
    tags = set()
    for _ in range(2):
        ok(http.post("/v1/sessions", json={"id": "again", "replace": True}))
        tags.add(tag(http.post("/v1/sessions/again/variables", json={"id": "w", "value": 1.5})))
    ok(http.delete("/v1/sessions/again"))
    assert len(tags) == 2


def test_a_retry_with_a_key_gets_the_first_answer_although_the_version_is_another_now(rest: Rest) -> None:
    old = tag(rest.get("variables/w"))
    conditions = {"If_Match": old, "Idempotency_Key": "once"}
    first, retry = put(rest, 2.5, **conditions), put(rest, 2.5, **conditions)
    assert first.json() == ok(retry).json()
    assert retry.headers["idempotent-replayed"] == "true"
    assert tag(retry) == tag(first)
    problem(put(rest, 2.5, If_Match=old, Idempotency_Key="other"), 412, "precondition_failed")


def test_no_update_of_many_callers_is_lost(rest: Rest) -> None:
    """Each adds 1 to what it read, until its assignment is accepted."""
    rest.create("variables", {"id": "count", "value": 0.5})
    path = f"{rest.path}/variables/count"

    def add(http: httpx.Client) -> int:
        attempts = 0
        while True:
            attempts += 1
            seen = ok(http.get(path))
            body = {"value": {"dtype": "float32", "data": seen.json()["value"]["data"] + 1}}
            answer = http.put(path, json=body, headers={"If-Match": seen.headers["etag"]})
            if answer.status_code == 200:
                return attempts
            problem(answer, 412, "precondition_failed")

    with ThreadPoolExecutor(4) as threads:
        attempts = list(threads.map(add, [rest.http] * 24))
    assert rest.data("variables/count") == 24.5
    assert ok(rest.get("variables/count")).json()["version"] == 24
    assert sum(attempts) >= 24


@pytest.mark.parametrize("text", ["1", '"open', "W/3", "", ",", '"a" "b"', 'w/"a"', '"tab\there"'])
@pytest.mark.parametrize("name", ["If-Match", "If-None-Match"])
def test_what_is_no_condition_is_refused(rest: Rest, name: str, text: str) -> None:
    path = f"{rest.path}/variables/w"
    requests: list[Callable[[], httpx.Response]] = [
        lambda: rest.http.put(path, json={"value": [1.5] * 2000}, headers={name: text})
    ]
    if name == "If-None-Match":
        requests.append(lambda: rest.http.get(path, headers={name: text}))
    else:
        requests.append(lambda: rest.http.delete(path, headers={name: text}))
    for send in requests:
        detail = problem(send(), 422, "invalid_request")["detail"]
        assert f"{name} is * or ETags in quotes, separated by commas, such as " in detail
        assert detail.endswith(f"found {text!r}")
    assert ok(rest.get("variables/w")).json()["version"] == 0


def test_a_variable_that_is_not_there_has_no_version(rest: Rest) -> None:
    problem(rest.put("variables/none", {"value": 1.5}, **{"If-Match": "*"}), 404, "unknown_id")
    rest.create("tensors", {"id": "x", "value": 1.5})
    problem(rest.put("variables/x", {"value": 1.5}, **{"If-Match": "*"}), 404, "unknown_id")
