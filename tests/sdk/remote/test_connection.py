"""HTTP: what is sent, what is tried again and for how long, and how a refusal becomes an exception."""

import json
from importlib import import_module

import httpx
import pytest
from loopback import PROGRESS

from teletape.core.errors import (
    AuthenticationError,
    ConnectionFailed,
    InvalidArgumentError,
    RequestError,
    SessionEndedError,
    TeletapeError,
    error_for,
    error_of,
)
from teletape.core.network import http as module
from teletape.core.network.http import Connection
from teletape.core.network.options import ConnectOptions
from teletape_engine.errors import AnswerDroppedError, OutOfTurnError, ReleasedIdError, tree

TYPE = "application/x-frame"


class Script(httpx.BaseTransport):
    """Answers each request with the next item of a list: a response, or an exception to raise."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []
        self.bodies = []

    def handle_request(self, request):
        self.requests.append(request)
        self.bodies.append(request.read())
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def respond(status, body=b"", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, headers=named, stream=httpx.ByteStream(body))


def problem(status, code, detail="what was found", **more):
    return respond(status, json.dumps({"code": code, "title": code, "detail": detail, **more}).encode())


def connected(*answers, key=None, **changes):
    script = Script(*answers)
    client = httpx.Client(transport=script)
    options = ConnectOptions(url="http://there/", api_key=key, allow_insecure=True, http_client=client)
    return script, Connection(options.but(**changes))


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    """The waits between attempts, without waiting."""
    taken = []
    monkeypatch.setattr(module.time, "sleep", taken.append)
    return taken


# -------------------------------------------------------------------------------------------------------------- sending
def test_json_there_and_back():
    script, http = connected(httpx.Response(201, json={"id": "s1"}), key="secret")
    assert http.json("POST", "/v1/sessions", {"device": "cpu"}) == {"id": "s1"}
    (request,) = script.requests
    assert (request.method, str(request.url)) == ("POST", "http://there/v1/sessions")
    assert request.headers["Authorization"] == "Bearer secret"
    assert script.bodies == [b'{"device":"cpu"}']
    assert http.requests == 1


def test_without_a_key_none_is_sent_and_an_empty_answer_is_none():
    script, http = connected(httpx.Response(204))
    assert http.json("DELETE", "/v1/sessions/s1") is None
    assert "Authorization" not in script.requests[0].headers


@pytest.mark.parametrize("size", [0, 10, 1 << 16, (5 << 20) + 3])
def test_a_frame_is_its_buffers_with_their_length(size):
    script, http = connected(respond(200, b"answer"))
    buffers = [b"head", memoryview(bytes(size)), b"tail"]
    assert http.frame("/v1/batch", buffers, size + 8, TYPE).body == b"answer"
    (request,), (body,) = script.requests, script.bodies
    assert body == b"head" + bytes(size) + b"tail"
    assert request.headers["Content-Length"] == str(size + 8)
    assert (request.headers["Content-Type"], request.headers["Accept"]) == (TYPE, TYPE)
    assert "Transfer-Encoding" not in request.headers
    assert request.headers["Accept-Encoding"] == "identity"  # the answer is taken as it comes


def test_a_large_answer_arrives_whole():
    whole = bytes(range(256)) * 20_000
    _, http = connected(respond(200, whole))
    assert http.frame("/v1/batch", [b"x"], 1, TYPE).body == whole


# -------------------------------------------------------------------------------------------------------------- retries
BROKEN = [
    httpx.ReadError("broke"),
    httpx.ConnectError("refused"),
    httpx.RemoteProtocolError("cut"),
    httpx.WriteError("w"),
]


@pytest.mark.parametrize("error", BROKEN, ids=lambda error: type(error).__name__)
def test_what_broke_on_the_way_is_sent_again_unchanged(error, waits):
    script, http = connected(httpx.Response(200, json={}), error, error, respond(200, b"answer"))
    http.json("GET", "/v1/info")
    assert http.frame("/v1/batch", [b"ab", b"c"], 3, TYPE).body == b"answer"
    assert script.bodies[1:] == [b"abc"] * 3
    assert http.requests == 2
    assert len(waits) == 2
    assert 0.05 <= waits[0] <= 0.15
    assert 0.1 <= waits[1] <= 0.3


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504, 507])
def test_a_server_that_is_busy_says_how_long_to_wait(status, waits):
    script, http = connected(respond(status, Retry_After="3"), respond(200, b"answer"))
    assert http.frame("/v1/batch", [b"x"], 1, TYPE).body == b"answer"
    assert waits == [3.0]
    assert http.requests == 1
    assert len(script.requests) == 2


@pytest.mark.parametrize("header", ["soon", "Sat, 21 Nov 2026 05:00:00 GMT", "nan", "inf", "-1", "1e9", ""])
def test_a_wait_that_is_no_number_is_the_usual_one(header, waits):
    _, http = connected(respond(503, Retry_After=header), respond(200, b"answer"))
    http.frame("/v1/batch", [b"x"], 1, TYPE)
    assert 0.05 <= waits[0] <= 0.15


def test_a_batch_that_runs_still_is_joined_however_long_it_takes(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module.time, "sleep", lambda wait: now.__setitem__(0, now[0] + wait))
    running = [respond(202, PROGRESS, Retry_After="5") for _ in range(120)]
    script, http = connected(*running, respond(200, b"answer"))
    assert http.frame("/v1/batch", [b"x"], 1, TYPE).body == b"answer"
    assert now[0] == 600.0
    assert script.bodies == [b"x"] * 121
    assert http.requests == 1


def test_facts_that_wait_for_a_session_that_computes_are_joined():
    script, http = connected(respond(202, PROGRESS, Retry_After="1"), respond(200, b'{"variables": []}'))
    assert http.get("/v1/sessions/mine/variables") == {"variables": []}
    keys = [request.headers.get("Idempotency-Key") for request in script.requests]  # without one there is no 202
    assert len(set(keys)) == 1
    assert keys[0]


RUNNING = {"Retry_After": "1", "Location": "/v1/requests/kD3_x-9"}


@pytest.mark.parametrize("location", ["/v1/requests/kD3_x-9", "https://gate.example/teletape/v1/requests/kD3_x-9"])
def test_a_request_that_runs_still_is_waited_for_at_its_address_and_its_body_is_sent_once(location, waits):
    where = {"Retry_After": "1", "Location": location}
    answers = [respond(202, PROGRESS, **where) for _ in range(3)]
    script, http = connected(*answers, httpx.ReadError("broke"), respond(503, Retry_After="2"), respond(200, b"answer"))
    assert http.frame("/v1/batch", [b"x" * 100_000], 100_000, TYPE).body == b"answer"
    assert [len(body) for body in script.bodies] == [100_000, 0, 0, 0, 0, 0]
    assert {(request.method, str(request.url)) for request in script.requests[1:]} == {
        ("GET", "http://there/v1/requests/kD3_x-9")
    }
    assert waits[:3] == [0.0, 1.0, 1.0], "it waits at the address at once"
    assert http.requests == 1
    script, http = connected(respond(202, PROGRESS, **where), respond(201, b'{"id": "s"}'), key="secret")
    assert http.create("/v1/sessions", {"device": "cpu"}) == {"id": "s"}
    assert [request.method for request in script.requests] == ["POST", "GET"]
    assert script.requests[1].headers["Authorization"] == "Bearer secret"


def test_a_request_whose_address_is_forgotten_is_sent_again():
    """The server was restarted, or another one answers."""
    running, forgotten = respond(202, PROGRESS, **RUNNING), problem(404, "request_not_found")
    script, http = connected(running, forgotten, respond(202, PROGRESS, **RUNNING), respond(200, b"answer"))
    assert http.frame("/v1/batch", [b"x"], 1, TYPE).body == b"answer"
    assert script.bodies == [b"x", b"", b"x", b""]


def test_a_refusal_at_the_address_is_the_requests():
    _, http = connected(respond(202, PROGRESS, **RUNNING), problem(410, "session_ended"))
    with pytest.raises(SessionEndedError):
        http.frame("/v1/batch", [b"x"], 1, TYPE)


def test_an_answer_cut_in_the_middle_is_not_mixed_with_the_next():
    class Cut(httpx.SyncByteStream):
        def __iter__(self):
            yield b"half an ans"
            raise httpx.ReadError("cut")

    _, http = connected(httpx.Response(200, stream=Cut()), respond(200, b"answer"))
    assert http.frame("/v1/batch", [b"x"], 1, TYPE).body == b"answer"


def test_patience_ends_and_the_address_is_reported(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module.time, "sleep", lambda wait: now.__setitem__(0, now[0] + wait))
    _, http = connected(*(httpx.ReadError("broke") for _ in range(100)))
    with pytest.raises(
        ConnectionFailed, match=r"http://there/v1/info: no answer \(ReadError: broke\); is the server"
    ) as e:
        http.json("GET", "/v1/info")
    assert 50 < now[0] <= 60
    _, http = connected(*(httpx.ReadError("broke") for _ in range(100)))
    now[0] = 0.0
    with pytest.raises(ConnectionFailed):
        http.info()  # the first request to an address
    assert 8 < now[0] <= 10
    assert isinstance(e.value, OSError)
    assert http.requests == 0


def test_patience_with_a_busy_server_ends_with_what_it_says(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module.time, "sleep", lambda wait: now.__setitem__(0, now[0] + wait))
    busy = [problem(429, "busy", "at most one at once") for _ in range(100)]
    _, http = connected(*busy)
    with pytest.raises(RequestError, match="at most one at once") as caught:
        http.json("GET", "/v1/info")
    assert (caught.value.code, caught.value.status) == ("busy", 429)


@pytest.mark.parametrize("seconds", [3600, 10**8])
def test_a_long_wait_that_a_server_names_is_cut_and_counts(monkeypatch, seconds):
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module.time, "sleep", lambda wait: now.__setitem__(0, now[0] + wait))

    def down(times):
        return [respond(503, b"be back soon", Retry_After=str(seconds)) for _ in range(times)]

    _, http = connected(*down(3), respond(200, b"answer"))
    assert http.frame("/v1/batch", [b"x"], 1, TYPE).body == b"answer"
    assert now[0] == 30.0
    now[0] = 0.0
    _, http = connected(*down(100))
    with pytest.raises(ConnectionFailed, match="something before the server answers in its place, HTTP 503: be back"):
        http.frame("/v1/batch", [b"x"], 1, TYPE)
    assert now[0] == 60.0


def test_a_problem_shows_the_words_of_a_proxys_page():
    page = b"""<html>\r\n<head><title>502 Bad Gateway</title><style>h1 {color: red}</style></head>\r\n<body>
        <center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx</center></body></html>"""
    assert str(error_of(502, page)) == "HTTP 502: 502 Bad Gateway nginx"


def test_each_call_has_its_own_patience(monkeypatch):
    """A side request that ends, or fails, says nothing of the frame that is sent meanwhile."""
    now, troubles = [0.0], []

    def sleep(wait):
        now[0] += wait
        if not troubles:
            http.control("POST", "/v1/sessions/s1/cancel")
        troubles.append(http.trouble())

    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module.time, "sleep", sleep)
    lost = [httpx.ReadError("broke")] * 3
    script, http = connected(httpx.Response(200, json={}), lost[0], respond(204), *lost, respond(200, b"answer"))
    http.json("GET", "/v1/info")
    assert http.frame("/v1/batch", [b"x"], 1, TYPE).body == b"answer"
    assert http.trouble() is None
    assert troubles == [f"no answer from http://there, trying again, {at:.0f} s of 60" for at in seconds_of(troubles)]
    assert len(troubles) == 4
    assert len(script.requests) == 7


def seconds_of(troubles):
    return [float(text.split(", ")[-1].split()[0]) for text in troubles]


# --------------------------------------------------------------------------------------------- what is no answer at all
NO_ANSWERS = {
    "a redirect to a login": (302, {"Location": "https://login.example/?next=/v1&token=abc"}, b""),
    "a redirect": (307, {"Location": "https://there/v1/x"}, b""),
    "a redirect to nowhere": (301, {}, b""),
    "a redirect that is no address": (301, {"Location": "http://[/"}, b""),
    "not modified": (304, {}, b""),
    "a part": (206, {}, b"{}"),
    "no content to show": (205, {}, b""),
    "of many": (207, {}, b"{}"),
    "accepted by something else": (202, {"Retry-After": "1"}, b"<html>wait</html>"),
    "a page of a gateway": (502, {}, b"<html>bad gateway</html>"),
}
CALLS = {
    "json": lambda http: http.json("GET", "/v1/x"),
    "create": lambda http: http.create("/v1/x"),
    "frame": lambda http: http.frame("/v1/x", [b"x"], 1, TYPE),
    "control": lambda http: http.control("POST", "/v1/x"),
    "get": lambda http: http.get("/v1/x"),
    "text": lambda http: http.text("/v1/x", []),
    "info": lambda http: http.info(),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("case", NO_ANSWERS)
def test_a_status_that_is_no_answer_is_an_error_that_names_it(case, call, monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE", 0.0)
    status, headers, body = NO_ANSWERS[case]
    _, http = connected(httpx.Response(status, headers=headers, stream=httpx.ByteStream(body)))
    with pytest.raises(ConnectionFailed, match=f"HTTP {status}") as caught:
        CALLS[call](http)
    if case == "a redirect to a login":
        assert "sends it to https://login.example/: a login or a proxy answers in its place" in str(caught.value)
        assert "abc" not in str(caught.value)
    if case == "a redirect" and call != "info":
        assert str(caught.value).endswith("sends it to another address: use https://there")
    assert http.requests == 0


def test_a_side_request_without_an_answer_is_no_success():
    _, http = connected(*[respond(status, b"{}") for status in (302, 401, 503)], *[respond(404), respond(204)])
    assert [http.try_delete("/v1/sessions/s1", 1.0) for _ in range(5)] == [False, False, False, True, True]
    _, http = connected(respond(302, b"{}"), respond(200, b"<html>"), respond(200, b'{"id": 1}'))
    assert [http.try_json("/v1/x") for _ in range(3)] == [None, None, {"id": 1}]


@pytest.mark.parametrize("body", [b"<html>log in</html>", b"", b"[1]", b'"text"', b"\xff\xfe", b"{"])
@pytest.mark.parametrize("call", ["json", "create", "control", "get"])
def test_a_page_in_place_of_json_is_an_error_of_its_own(body, call):
    _, http = connected(respond(200, body))
    with pytest.raises(ConnectionFailed, match=r"http://there/v1/x: the answer, HTTP 200, is no JSON object but"):
        CALLS[call](http)


def test_a_body_that_cannot_be_unpacked_is_an_error_of_its_own(waits):
    packed = httpx.Response(200, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(b"no gzip"))
    _, http = connected(packed)
    with pytest.raises(ConnectionFailed, match=r"http://there/v1/x: no answer \(DecodingError: "):
        http.json("GET", "/v1/x")
    assert waits == []


def test_no_server_at_the_address_is_reported_at_once(waits):
    script, http = connected(httpx.ConnectError("refused"))
    with pytest.raises(ConnectionFailed, match=r"http://there: nothing answers there \(refused\)"):
        http.json("GET", "/v1/info")
    assert (len(script.requests), waits) == (1, [])


# ------------------------------------------------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (401, "unauthenticated", AuthenticationError),
        (410, "session_ended", SessionEndedError),
        (422, "invalid_argument", InvalidArgumentError),
        (410, "released_id", ReleasedIdError),
        (409, "out_of_turn", OutOfTurnError),
        (410, "answer_dropped", AnswerDroppedError),
        (413, "body_too_large", RequestError),
    ],
)
@pytest.mark.parametrize("door", ["json", "frame"])
def test_a_problem_is_an_exception_of_its_own(status, code, error, door, waits):
    _, http = connected(problem(status, code, request_id="r7"))
    with pytest.raises(error) as caught:
        http.json("GET", "/v1/x") if door == "json" else http.frame("/v1/x", [b"x"], 1, TYPE)
    assert "what was found (request r7)" in str(caught.value)
    assert caught.value.request_id == "r7"
    assert caught.value.code == code
    assert caught.value.details["status"] == status
    assert waits == []


@pytest.mark.parametrize("body", [b"<html>go away</html>", b"", b"[1]", b'{"code": "x"}', b'"text"', b"\xff\xfe"])
def test_what_is_no_problem_is_reported_as_it_is(body):
    error = error_of(403, body)
    assert isinstance(error, RequestError)
    assert (error.status, error.code) == (403, "internal")
    assert str(error).startswith("HTTP 403: ")


def test_a_page_is_shown_in_part():
    assert len(str(error_of(500, b"<p>" * 10_000))) < 250


def test_a_problem_with_a_title_alone():
    assert str(error_of(503, b'{"code": "busy", "title": "Busy"}')) == "Busy"


@pytest.mark.parametrize("code", tree())
def test_every_code_has_its_class(code):
    error = error_for(code, "words", op="add")
    assert (error.code, str(error), error.details["op"]) == (code, "words", "add")
    of_server = tree()[code].__module__.startswith("teletape_server.")  # if another test has loaded it
    if code != "internal":
        assert type(error) is (RequestError if of_server else tree()[code])


@pytest.mark.parametrize("code", ["body_too_large", "invalid_request"])
def test_a_server_in_this_process_changes_no_error_of_the_sdk(code: str) -> None:
    import_module("teletape_server.tensor_files.errors")
    error = error_for(code, "too large", status=413)
    assert (type(error), error.code) == (RequestError, code)


@pytest.mark.parametrize("code", ["too_many_sessions", "busy", "unauthenticated", "unknown_session"])
def test_a_refusal_has_the_id_of_its_request_and_the_seconds_after_which_to_try_again(code):
    body = {"code": code, "title": code, "instance": "urn:teletape:request:4f2a"}
    answer = respond(429, json.dumps(body).encode(), Retry_After="90")
    _, http = connected(answer, max_retries=0)
    with pytest.raises(TeletapeError) as caught:
        http.json("POST", "/v1/sessions")
    assert (caught.value.request_id, caught.value.retry_after) == ("4f2a", 90.0)
    assert "urn:" not in str(caught.value)


@pytest.mark.parametrize("status", [409, 429, 507])
def test_the_client_waits_for_what_is_free_soon_and_not_for_what_is_free_later(status, waits, monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE", 60.0)
    body = json.dumps({"code": "too_many_sessions", "title": "full"}).encode()
    answer = respond(200, b"{}")
    _, http = connected(respond(status, body, Retry_After="4"), answer)
    assert http.json("POST", "/v1/sessions") == {}
    _, http = connected(respond(status, body, Retry_After="11"), answer)
    with pytest.raises(TeletapeError):
        http.json("POST", "/v1/sessions")


def test_what_refuses_no_request_has_neither():
    assert (InvalidArgumentError("no").request_id, InvalidArgumentError("no").retry_after) == (None, None)
    page = respond(503, b"<h1>Down</h1>", Retry_After="Wed, 21 Oct 2026 07:28:00 GMT")
    _, http = connected(page, max_retries=0)
    with pytest.raises(ConnectionFailed) as caught:
        http.json("GET", "/v1/x")
    assert caught.value.retry_after is None
