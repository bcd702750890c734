"""A page on another origin in a real browser: an allowed one computes, a refused one changes and reads nothing."""

import http.server
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from serving import KEYS, Server, ok
from teletape_server.settings import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

#: What an application does: a gradient, a session with a binary tensor, a refusal, the progress of a request.
PROGRAM = """
async ([server, key]) => {
  const keys = key ? { Authorization: `Bearer ${key}` } : {};
  const call = (path, init = {}) =>
    fetch(server + path, { ...init, headers: { ...keys, "Content-Type": "application/json", ...init.headers } });
  const run = await call("/v1/run", { method: "POST", body: JSON.stringify({
    commands: [
      { do: "variable", id: "x", value: 3.5 },
      { do: "tape.open", id: "t" },
      { do: "op", op: "square", inputs: ["x"], outputs: ["y"] },
      { do: "gradient", tape: "t", targets: ["y"], sources: ["x"], outputs: ["dx"] }],
    fetch: ["dx"] }) });
  const gradient = (await run.json()).values.dx.data;
  const created = await call("/v1/sessions", { method: "POST", body: '{"id": "page"}' });
  const tensor = await call("/v1/sessions/page/tensors?id=big", {
    method: "POST", body: new Float32Array([1.5, 2.5]),
    headers: { "Content-Type": "application/octet-stream", "Tensor-Dtype": "float32", "Tensor-Shape": "2" } });
  const bytes = await call("/v1/sessions/page/tensors/big", { headers: { Accept: "application/octet-stream" } });
  const refusal = await call("/v1/sessions/page/tensors/none");
  const events = await call("/v1/sessions/page/ops", { method: "POST", headers: { Accept: "text/event-stream" },
    body: JSON.stringify({ ops: [{ op: "neg", inputs: ["big"], outputs: ["negative"] }] }) });
  const text = await events.text();
  await call("/v1/sessions/page", { method: "DELETE" });
  return {
    gradient, created: created.status, location: created.headers.get("Location"), tensor: tensor.status,
    shape: bytes.headers.get("Tensor-Shape"), values: [...new Float32Array(await bytes.arrayBuffer())],
    refusal: (await refusal.json()).code, id: refusal.headers.get("X-Request-Id"),
    answered: text.includes("event: answer") };
}
"""
#: What an application of a stranger tries; each is "refused" if the browser shows it nothing.
ATTEMPTS = """
async ([server, key]) => {
  const keys = key ? { Authorization: `Bearer ${key}` } : {};
  const attempt = (path, init) => fetch(server + path, init).then(() => "read", () => "refused");
  const json = { ...keys, "Content-Type": "application/json" };
  return [
    await attempt("/v1/info", { headers: keys }),
    await attempt("/v1/sessions", { method: "POST", body: '{"id": "stranger"}', headers: json }),
    await attempt("/v1/sessions", { method: "POST", body: '{"id": "stranger"}' }),
    await attempt("/v1/sessions/own", { method: "DELETE", headers: keys })];
}
"""


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b'<!doctype html><link rel="icon" href="data:,"><title>an application</title>')

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing."""


@pytest.fixture
def origin() -> Iterator[str]:
    """Where an application's page is served."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page) as pages:
        thread = threading.Thread(target=pages.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{pages.server_address[1]}"
        pages.shutdown()
        thread.join()


@pytest.fixture
def page(browser: "Browser") -> "Iterator[Page]":
    """An empty tab."""
    tab = browser.new_page()
    tab.set_default_timeout(60_000)
    yield tab
    tab.close()


@pytest.mark.parametrize("keys", [{}, KEYS], ids=["without keys", "with keys"])
def test_an_allowed_page_computes_and_a_refused_one_reads_nothing(page: "Page", origin: str, keys: Any) -> None:
    """The same page has two origins: 127.0.0.1, which is allowed, and localhost, which is not."""
    settings = Settings(allow_origins=frozenset({origin}), api_keys=keys, shutdown_grace=0.1)
    with Server(settings).running() as server, server.client() as client:
        ok(client.post("/v1/sessions", json={"id": "own"}))
        program = [server.url, keys.get("ann", "")]
        page.goto(origin)
        result = page.evaluate(PROGRAM, program)
        request_id = result.pop("id")
        assert len(request_id) == 16
        assert result == {
            "gradient": 7,
            "created": 201,
            "location": "/v1/sessions/page",
            "tensor": 201,
            "shape": "2",
            "values": [1.5, 2.5],
            "refusal": "unknown_id",
            "answered": True,
        }
        page.goto(origin.replace("127.0.0.1", "localhost"))
        assert page.evaluate(ATTEMPTS, program) == ["refused"] * 4
        assert [session["id"] for session in ok(client.get("/v1/sessions")).json()["sessions"]] == ["own"]
