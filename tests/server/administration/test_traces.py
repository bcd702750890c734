"""A trace of OpenTelemetry: the program's line, the request in the server, and what the session's process ran."""

import logging
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Final

import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import teletape as tf
from serving import KEYS, Server, ok, until
from teletape_server.cli import tracing_of
from teletape_server.settings import Settings

TRACE: Final = "0af7651916cd43dd8448eb211c80319c"
PARENT: Final = "b7ad6b7169203331"
SAMPLED: Final = {"traceparent": f"00-{TRACE}-{PARENT}-01"}


class Collector(ThreadingHTTPServer):
    """Takes spans as a collector of OpenTelemetry does."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.services: set[str] = set()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = ExportTraceServiceRequest()
                body = self.rfile.read(int(self.headers["Content-Length"]))
                request.ParseFromString(body)
                for resource in request.resource_spans:
                    names = {item.key: item.value.string_value for item in resource.resource.attributes}
                    collector.services.add(names["service.name"])
                    collector.spans += [span for scope in resource.scope_spans for span in scope.spans]
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Writes nothing."""

        super().__init__(("127.0.0.1", 0), Handler)

    def trace(self, trace_id: str, count: int) -> dict[str, Any]:
        """Returns the spans of a trace by name, as soon as there are that many."""
        by_name: dict[str, Any] = {}

        def is_whole() -> bool:
            by_name.update({span.name: span for span in self.spans if span.trace_id.hex() == trace_id})
            return len(by_name) >= count

        until(is_whole)
        return by_name


def attributes(span: Any) -> dict[str, Any]:
    values = {item.key: item.value for item in span.attributes}
    return {name: getattr(value, value.WhichOneof("value")) for name, value in values.items()}


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with Collector() as item:
        Thread(target=item.serve_forever, daemon=True).start()
        yield item
        item.shutdown()


@pytest.fixture(scope="module")
def server(collector: Collector) -> Iterator[Server]:
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
        "OTEL_BSP_SCHEDULE_DELAY": "20",
    }
    settings = Settings(api_keys=KEYS, shutdown_grace=0.1)
    with Server(settings, tracing=tracing_of(variables)).running() as item:
        yield item


def test_the_spans_of_a_program_and_of_the_server_are_one_trace(server: Server, collector: Collector) -> None:
    provider, here = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(here))
    trace.set_tracer_provider(provider)
    with tf.connect(f"http://127.0.0.1:{server.port}", api_key=KEYS["ann"]):
        x = tf.Variable([1.0, 2.0])
        for _ in range(5):  # connections are lent meanwhile, and come back
            (x + 1.0).numpy()
        with trace.get_tracer("test").start_as_current_span("step") as step:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.exp(x))
            line = sys._getframe().f_lineno + 1
            tape.gradient(loss, x).numpy()
        session = tf.session().id
        (x + 1.0).numpy()  # no span is recorded here
    (wait,) = [span for span in here.get_finished_spans() if span.name == "teletape wait"]
    assert wait.parent is not None
    assert wait.parent.span_id == step.get_span_context().span_id
    assert wait.attributes is not None
    assert (wait.attributes["code.file.path"], wait.attributes["code.line.number"]) == (__file__, line)

    spans = collector.trace(f"{step.get_span_context().trace_id:032x}", 2)
    request, compute = spans["POST /v1/sessions/{session}/batch"], spans["compute batch"]
    assert int(request.parent_span_id.hex(), 16) == wait.context.span_id
    assert compute.parent_span_id == request.span_id
    assert request.start_time_unix_nano <= compute.start_time_unix_nano
    assert compute.end_time_unix_nano <= request.end_time_unix_nano
    facts = attributes(request)
    assert (facts["teletape.session"], facts["teletape.owner"]) == (session, "ann")
    assert (facts["http.response.status_code"], facts["http.route"]) == (200, "/v1/sessions/{session}/batch")
    assert attributes(compute)["teletape.ops.exp"] == 1
    assert collector.services == {"teletape"}


@pytest.mark.parametrize("headers", [{}, {"Expect": "100-continue"}], ids=["plain", "by the framework"])
def test_requests_by_rest_are_traced_if_their_caller_samples_them(
    server: Server, collector: Collector, headers: dict[str, str]
) -> None:
    trace_id = TRACE[:-1] + str(len(headers))
    sampled = {"traceparent": f"00-{trace_id}-{PARENT}-01", "X-Request-Id": "mine", **headers}
    with server.client() as http:
        run = {"commands": [{"do": "op", "op": "exp", "inputs": [0.5], "outputs": ["a"]}]}
        for _ in range(6):  # its connection would be lent by then
            ok(http.post("/v1/run", json=run, headers=sampled))
        ok(http.post("/v1/run", json=run, headers=headers | {"traceparent": f"00-{TRACE[:-1]}f-{PARENT}-00"}))
        ok(http.post("/v1/run", json=run, headers=headers | {"traceparent": "no trace"}))

    def named(name: str) -> list[Any]:
        return [span for span in collector.spans if span.name == name and span.trace_id.hex() == trace_id]

    until(lambda: len(named("POST /v1/run")) == len(named("compute run")) == 6)
    for request in named("POST /v1/run"):
        assert request.parent_span_id.hex() == PARENT
        assert attributes(request)["teletape.request_id"] == "mine"
    assert {span.parent_span_id for span in named("compute run")} == {span.span_id for span in named("POST /v1/run")}
    assert not any(span.trace_id.hex() == f"{TRACE[:-1]}f" for span in collector.spans)


def test_what_ends_after_a_202_is_in_the_trace_too(collector: Collector) -> None:
    variables = {
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"http://127.0.0.1:{collector.server_port}/v1/traces",
        "OTEL_SERVICE_NAME": "box",
        "OTEL_BSP_SCHEDULE_DELAY": "20",
    }
    server = Server(Settings(patience=0.01, shutdown_grace=0.1), tracing=tracing_of(variables))
    with server.running(), server.client(None) as http:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        loop = {
            "commands": [
                {"do": "function", "id": "f", "inputs": ["x"], "outputs": ["y"], "steps": [
                    {"op": "add", "inputs": ["x", 1.0], "outputs": ["y"]}]},
                {"do": "scan", "body": "f", "inputs": [0.5], "outputs": ["last"], "carried": 1, "length": 5_000_000},
            ]
        }  # fmt: skip
        answer = http.post("/v1/sessions/demo/run", json=loop, headers=SAMPLED | {"Idempotency-Key": "k"})
        assert answer.status_code == 202
        spans = collector.trace(TRACE, 3)
    request = spans["POST /v1/sessions/{session}/run"]
    assert attributes(request)["http.response.status_code"] == 202
    run = spans["compute batches-run_in_session"]
    assert run.parent_span_id == request.span_id
    assert run.end_time_unix_nano > request.end_time_unix_nano
    assert "box" in collector.services


@pytest.mark.parametrize(
    "variables",
    [{}, {"OTEL_SERVICE_NAME": "x"}, {"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}],
)
def test_nothing_is_traced_unless_the_environment_names_a_collector(variables: dict[str, str]) -> None:
    assert tracing_of(variables) is None


def test_a_missing_package_is_said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setitem(sys.modules, "teletape_server.middleware.tracing", None)
    with caplog.at_level(logging.WARNING):
        assert tracing_of({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}) is None
    assert "pip install 'teletape[traces]'" in caplog.text
