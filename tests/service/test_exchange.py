"""What a call does about answers that come later, refusals and silence: without a network and without waiting."""

from typing import Any

import httpx
import pytest

from teletape_client.errors import (
    AuthenticationError,
    BusyError,
    DeadlineExceededError,
    InvalidRequestError,
    NoAnswerError,
    ServerError,
)
from teletape_client.network.actions import Begun, Call, Close, Pause, ReadMore, Send
from teletape_client.network.drivers import Left
from teletape_client.network.events import Event, Parser
from teletape_client.network.exchange import LONGEST_WAIT, READ_LIMIT, exchange
from teletape_client.network.known import SMALL, Known
from teletape_client.network.options import Options

PATH = "/v1/sessions/s/functions/f/gradient"
QUESTION = Call("POST", PATH, lambda facts, tensors: facts, fields={"inputs": [1.5]}, offers_file=True, has_full=True)
SILENCE = httpx.ReadError("the connection was cut")
ADDRESS = "/v1/requests/r-1"


def answer(status: int = 200, body: Any = None, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, json={"y": 2.5} if body is None else body, headers=named)


def running(**headers: str) -> httpx.Response:
    return answer(202, {"status": "running"}, Location=f"https://proxy/base{ADDRESS}", **headers)


def problem(status: int, code: str, **headers: str) -> httpx.Response:
    body = {"code": code, "status": status, "detail": "no", "details": {"n": 1}, "instance": "urn:teletape:request:abc"}
    return answer(status, body, **headers)


class Played:
    """A call that gets these responses in turn, errors among them; pauses pass in no time.

    Attributes:
        sent: The requests.
        pauses: The seconds of the pauses.
        events: What was yielded to the caller.
        result: The answer's JSON.
    """

    def __init__(
        self, *responses: Any, call: Call = QUESTION, events: bool = False, known: Known | None = None, **options: Any
    ) -> None:
        self.sent: list[Send] = []
        self.pauses: list[float] = []
        self.events: list[Any] = []
        self._now = 0.0
        self._pieces: list[bytes] = []
        pending = list(responses)
        flow = exchange(call, Options(**options), known or Known(), events=events, clock=lambda: self._now)
        result: Any = None
        try:
            while True:
                action = flow.throw(result) if isinstance(result, BaseException) else flow.send(result)
                result = None
                if isinstance(action, Send):
                    self.sent.append(action)
                    result = pending.pop(0)
                    if isinstance(result, httpx.ReadTimeout):
                        self._now += action.timeout.read or 0
                elif isinstance(action, Pause):
                    self.pauses.append(action.seconds)
                    self._now += action.seconds
                elif isinstance(action, ReadMore):
                    result = pending.pop(0)
                elif isinstance(action, Event):
                    self.events.append(action)
                else:
                    assert isinstance(action, Begun | Close) or action.response.read() is not None
        except StopIteration as end:
            self.result = end.value.read()
        finally:
            self.left = pending


def keys(played: Played) -> set[str]:
    return {send.headers["Idempotency-Key"] for send in played.sent if send.method == "POST"}


def test_a_call_is_one_request_with_a_key() -> None:
    played = Played(answer())
    (send,) = played.sent
    assert (send.method, send.path, send.content) == ("POST", f"{PATH}?full=true", b'{"inputs":[1.5]}')
    assert send.headers["Idempotency-Key"] not in keys(Played(answer()))
    assert played.result == {"y": 2.5}


def test_an_answer_that_comes_later_is_waited_for_at_its_address() -> None:
    played = Played(running(Retry_After="1"), running(Retry_After="1"), answer())
    assert [(send.method, send.path) for send in played.sent] == [
        ("POST", f"{PATH}?full=true"),
        ("GET", ADDRESS),
        ("GET", ADDRESS),
    ]
    assert played.pauses == [1.0]
    assert [send.headers["Accept"] for send in played.sent[1:]] == [played.sent[0].headers["Accept"]] * 2


def test_a_forgotten_address_means_that_the_request_is_sent_again_with_its_key() -> None:
    played = Played(running(), answer(404, {}), answer())
    assert [send.method for send in played.sent] == ["POST", "GET", "POST"]
    assert len(keys(played)) == 1


@pytest.mark.parametrize("failure", [SILENCE, problem(429, "busy"), problem(503, "overloaded", Retry_After="1")])
def test_silence_and_a_busy_server_mean_another_attempt_with_the_same_key(failure: Any) -> None:
    played = Played(failure, failure, answer())
    assert len(played.sent) == 3
    assert len(keys(played)) == 1
    assert played.result == {"y": 2.5}


@pytest.mark.parametrize(
    ("named", "seconds"), [("0.5", 0.5), ("3600", LONGEST_WAIT), ("Fri, 27 Nov 2026 12:00:00 GMT", 1.0)]
)
def test_the_wait_that_the_server_names_is_bounded(named: str, seconds: float) -> None:
    assert Played(problem(503, "overloaded", Retry_After=named), answer()).pauses == [seconds]


def test_attempts_end() -> None:
    with pytest.raises(BusyError) as raised:
        Played(*[problem(429, "busy", Retry_After="7")] * 3, max_retries=2)
    assert (raised.value.code, raised.value.retry_after, raised.value.request_id) == ("busy", 7.0, "abc")
    assert raised.value.problem["details"] == raised.value.details == {"n": 1}
    with pytest.raises(NoAnswerError, match=r"no answer \(ReadError: the connection was cut\)") as silent:
        Played(SILENCE, max_retries=0)
    assert isinstance(silent.value, ConnectionError)


def test_no_attempt_begins_that_the_time_is_too_short_for() -> None:
    with pytest.raises(BusyError):
        Played(problem(503, "overloaded", Retry_After="5"), timeout=3.0)


def test_the_server_gets_what_is_left_of_the_time() -> None:
    played = Played(problem(503, "overloaded", Retry_After="2"), answer(), timeout=5.0)
    assert [send.headers["Teletape-Time-Limit"] for send in played.sent] == ["5.000", "3.000"]
    assert [send.timeout.read for send in played.sent] == [5.0, 3.0]
    unlimited = Played(answer(), timeout=None).sent[0]
    assert "Teletape-Time-Limit" not in unlimited.headers
    assert unlimited.timeout.read == READ_LIMIT


def test_a_call_that_gets_no_answer_in_its_time_raises() -> None:
    with pytest.raises(DeadlineExceededError, match="no answer within 3 s"):
        Played(running(), httpx.ReadTimeout(""), timeout=3.0)
    with pytest.raises(DeadlineExceededError, match="no"):
        Played(problem(422, "deadline_exceeded"), timeout=3.0)


class Recorded(Played):
    """A call whose requests are added to a list, also if it raises."""

    def __init__(self, sent: list[Send], *responses: Any, **options: Any) -> None:
        try:
            super().__init__(*responses, **options)
        finally:
            sent += self.sent


def test_a_call_that_is_left_cancels_its_request() -> None:
    sent: list[Send] = []
    with pytest.raises(Left):
        Recorded(sent, running(), Left(), answer(202, {}))
    assert [(send.method, send.path) for send in sent][1:] == [("GET", ADDRESS), ("DELETE", ADDRESS)]
    sent.clear()
    with pytest.raises(Left):
        Recorded(sent, Left(), running(), answer(202, {}))
    assert [send.method for send in sent] == ["POST", "POST", "DELETE"]
    assert {**sent[1].headers, "Teletape-Time-Limit": "600.000"} == {**sent[0].headers, "Prefer": "respond-async"}
    assert sent[1].is_farewell
    sent.clear()
    with pytest.raises(Left):
        Recorded(sent, Left(), httpx.ConnectError("gone"))


@pytest.mark.parametrize(
    ("response", "error", "message"),
    [
        (problem(422, "invalid_argument"), InvalidRequestError, r"no \(invalid_argument, request abc\)"),
        (problem(401, "unauthenticated"), AuthenticationError, "no"),
        (problem(500, "internal"), ServerError, "no"),
        (problem(418, "teapot"), InvalidRequestError, "no"),
        (answer(301, {}, Location="https://here/"), NoAnswerError, "redirects to https://here/"),
        (httpx.Response(403, html="<title>x</title><p>Log <b>in</b></p>"), AuthenticationError, "Log in"),
    ],
)
def test_a_refusal_is_raised_at_once(response: httpx.Response, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Played(response)


def test_a_page_of_a_gateway_is_no_answer() -> None:
    with pytest.raises(NoAnswerError, match="Bad Gateway"):
        Played(*[httpx.Response(502, html="<h1>Bad Gateway</h1>")] * 4)


def test_an_answer_of_something_else_is_no_answer() -> None:
    with pytest.raises(NoAnswerError, match="is something else at this address"):
        Played(httpx.Response(200, html="<h1>It works</h1>")).result  # noqa: B018


def test_a_deletion_that_was_sent_twice_has_succeeded() -> None:
    deletion = Call("DELETE", "/v1/sessions/s", is_work=False)
    assert Played(SILENCE, problem(410, "session_ended"), call=deletion).result is None
    with pytest.raises(Exception, match="session_ended"):
        Played(problem(410, "session_ended"), call=deletion)


def test_a_value_that_has_no_place_in_safetensors_is_read_as_json() -> None:
    played = Played(problem(406, "not_acceptable"), answer(), call=QUESTION._replace(method="GET", fields=None))
    assert [send.headers["Accept"].partition(",")[0] for send in played.sent] == [
        "application/vnd.safetensors",
        "application/json",
    ]


GRADIENT = QUESTION._replace(function=PATH.removesuffix("/gradient"))
PURE, ASSIGNING = answer(body={"assigns": []}), answer(body={"assigns": ["w"]})


def is_plain(send: Send) -> bool:
    return send.path == PATH and "Idempotency-Key" not in send.headers and send.headers["Accept"] == "application/json"


def test_a_question_that_was_quick_is_plain_from_then_on_if_its_function_assigns_nothing() -> None:
    known = Known()
    assert not is_plain(Played(answer(), call=GRADIENT, known=known).sent[0])
    second = Played(PURE, answer(), call=GRADIENT, known=known)
    assert [(send.method, send.path) for send in second.sent] == [("GET", GRADIENT.function), ("POST", PATH)]
    third = Played(answer(), call=GRADIENT, known=known)
    assert is_plain(second.sent[1])
    assert third.sent == second.sent[1:], "the head is the same each time"
    assert third.sent[0].headers["Teletape-Time-Limit"] == "600"
    assert third.result == {"y": 2.5}


def test_a_question_about_a_function_that_assigns_always_has_a_key() -> None:
    known = Known()
    Played(answer(), call=GRADIENT, known=known)
    Played(ASSIGNING, answer(), call=GRADIENT, known=known)
    assert len(keys(Played(answer(), call=GRADIENT, known=known))) == 1


@pytest.mark.parametrize("changes", [{"fields": {"inputs": [1.5], "outputs": ["g"]}}, {"function": ""}])
def test_what_keeps_its_results_always_has_a_key(changes: dict[str, Any]) -> None:
    known, call = Known(), GRADIENT._replace(**changes)
    for _ in range(3):
        assert len(keys(Played(answer(), call=call, known=known))) == 1


@pytest.mark.parametrize(
    "failure",
    [SILENCE, problem(503, "overloaded"), answer(body={"y": {"dtype": "f", "complete": False}}), running()],
    ids=["silence", "busy", "a part", "later"],
)
def test_a_plain_question_that_is_not_answered_is_sent_again_with_a_key(failure: Any) -> None:
    known = Known()
    Played(answer(), call=GRADIENT, known=known)
    Played(PURE, answer(), call=GRADIENT, known=known)
    played = Played(failure, answer(), call=GRADIENT, known=known)
    assert [is_plain(send) for send in played.sent] == [True, False]
    assert len({send.headers.get("Idempotency-Key") for send in played.sent}) == 2
    assert played.result == {"y": 2.5}


def test_a_plain_question_that_is_refused_raises() -> None:
    known = Known()
    Played(answer(), call=GRADIENT, known=known)
    with pytest.raises(InvalidRequestError):
        Played(PURE, problem(422, "invalid_argument"), call=GRADIENT, known=known)


def test_questions_with_large_answers_or_slow_ones_are_not_plain() -> None:
    known = Known()
    large = answer(body={"y": "x" * SMALL})
    for response in (large, large):
        assert len(keys(Played(response, call=GRADIENT, known=known))) == 1
    for responses in ([running(), answer()], [running(), answer()]):
        assert len(keys(Played(*responses, call=GRADIENT, known=known))) == 1


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/sessions/s/functions"),
        ("POST", "/v1/sessions"),
        ("DELETE", GRADIENT.function),
        ("POST", "/v1/sessions/s/run"),
    ],
)
def test_what_a_function_assigns_is_asked_again_after_it_may_have_been_replaced(method: str, path: str) -> None:
    known = Known()
    Played(answer(), call=GRADIENT, known=known)
    Played(PURE, answer(), call=GRADIENT, known=known)
    Played(answer(), call=Call(method, path), known=known)
    assert [send.method for send in Played(ASSIGNING, answer(), call=GRADIENT, known=known).sent] == ["GET", "POST"]


def test_a_value_is_read_without_a_key_and_waited_for_as_long_as_there_is_time() -> None:
    reading = QUESTION._replace(method="GET", fields=None)
    played = Played(*[httpx.ReadTimeout("")] * 9, answer(), call=reading, timeout=300.0)
    assert "Idempotency-Key" not in played.sent[0].headers
    assert (len(played.sent), played.pauses) == (10, [])
    with pytest.raises(DeadlineExceededError):
        Played(*[httpx.ReadTimeout("")] * 3, call=reading, timeout=80.0)


STREAM = {"headers": {"Content-Type": "text/event-stream"}}
PROGRESS = b'event: progress\ndata: {"iteration":5}\n\n'
LAST = b'event: answer\nid: 200\ndata: {"y":\ndata: 2.5}\n\n'


def test_events_are_yielded_before_the_answer() -> None:
    played = Played(httpx.Response(200, **STREAM), PROGRESS[:20], PROGRESS[20:] + b": alive\n\n", LAST, events=True)
    assert [event.data for event in played.events] == [{"iteration": 5}]
    assert played.result == {"y": 2.5}


def test_a_stream_that_breaks_is_joined_again_with_its_key() -> None:
    opened = httpx.Response(200, **STREAM)
    played = Played(opened, PROGRESS, None, opened, SILENCE, opened, LAST, events=True)
    assert len(played.sent) == 3
    assert len(keys(played)) == 1
    assert played.result == {"y": 2.5}


def test_a_problem_among_the_events_is_raised() -> None:
    event = b'event: problem\nid: 409\ndata: {"code":"cancelled","status":409,"title":"Cancelled"}\n\n'
    with pytest.raises(Exception, match=r"Cancelled \(cancelled\)"):
        Played(httpx.Response(200, **STREAM), event, events=True)


@pytest.mark.parametrize("size", range(1, 30))
def test_events_are_found_wherever_their_pieces_end(size: int) -> None:
    parser, stream = Parser(), PROGRESS + LAST
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    events = [event for piece in pieces for event in parser.events(piece)]
    assert events == [Event("progress", {"iteration": 5}), Event("answer", {"y": 2.5})]


@pytest.mark.parametrize("changes", [{"timeout": 0}, {"timeout": -1.0}, {"max_retries": -1}])
def test_options_out_of_range_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="found"):
        Options().with_changes(changes)


def test_an_option_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="retries"):
        Options().with_changes({"retries": 3})
    assert Options(headers={"a": "1"}).with_changes({"headers": {"b": "2"}}).headers == {"a": "1", "b": "2"}
