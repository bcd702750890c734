"""The console in a real browser: watch sessions, cancel, extend and end them; look into tapes, also long ones."""

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import pytest

from serving import KEYS, Server, ok
from teletape_server.budgets.limits import Limits, Use
from teletape_server.identity.entries import ACTIONS
from teletape_server.identity.principals import SCOPES
from teletape_server.settings import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

PATIENCE = 30_000  # milliseconds: the browser may be busy with itself
MOST_BYTES = 200_000
LOOP = {
    "commands": [
        {
            "do": "function",
            "id": "step",
            "inputs": ["x"],
            "outputs": ["y"],
            "steps": [{"op": "sin", "inputs": ["x"], "outputs": ["y"]}],
        },
        {"do": "scan", "body": "step", "inputs": [2.5], "carried": 1, "length": 1_000_000_000, "outputs": ["last"]},
    ]
}


@pytest.fixture(scope="module")
def console_server() -> Iterator[Server]:
    """A server for many sessions and long loops."""
    settings = Settings(sessions=200, sessions_per_key=200, max_iterations=1 << 40, time_limit=200.0, log_level="error")
    with Server(settings).running() as running:
        yield running


Opener = Callable[..., "Page"]


@pytest.fixture
def open_page(browser: "Browser", console_server: Server) -> Iterator[Opener]:
    """Opens the page; after the test nothing has complained, and no request has gone to another host."""
    requests: list[str] = []
    complaints: list[str] = []
    contexts = []

    def opener(address: str = "", *, url: str = console_server.url, width: int = 1280, dark: bool = False) -> "Page":
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.goto(f"{url}/console{address}")
        return page

    yield opener
    for context in contexts:
        context.close()
    assert {urlsplit(url).hostname for url in requests if urlsplit(url).scheme != "data"} == {"127.0.0.1"}
    # Chromium writes a line for each refusal, which the page shows in its own words.
    assert [text for text in complaints if not text.startswith("Failed to load resource")] == []


@pytest.fixture
def session(console_server: Server) -> Iterator[Any]:
    """Creates sessions, and ends them."""
    with console_server.client() as client:
        ids: list[str] = []

        def create(id: str, ops: list[dict[str, Any]] | None = None) -> str:
            ok(client.post("/v1/sessions", json={"id": id}))
            ids.append(id)
            path = f"/v1/sessions/{id}"
            if ops is not None:
                ok(client.post(f"{path}/variables", json={"id": "w", "value": [0.5, -1.5, 2.5]}))
                ok(client.post(f"{path}/tapes", json={"id": "t"}))
                ok(client.post(f"{path}/tapes/t/ops", json={"ops": ops}))
            return path

        create.client = client  # type: ignore[attr-defined]  # the tests' way to the server
        yield create
        for id in ids:
            client.delete(f"/v1/sessions/{id}")


OPS = [
    {"op": "tanh", "inputs": ["w"], "outputs": ["a"], "where": "train.py:1"},
    {"op": "round", "inputs": ["a"], "outputs": ["b"]},
    {"op": "mul", "inputs": ["a", 3.5], "outputs": ["c"]},
]


def choose(page: "Page", id: str) -> None:
    page.locator(f'[data-session="local:{id}"].session-row').click()
    page.locator(f'.pane[data-session="local:{id}"]').wait_for()


def drawn(page: "Page") -> None:
    page.locator('.tapes[data-state="ready"]').wait_for()


def test_a_node_has_its_value_gradient_and_explanation(open_page: Opener, session: Any) -> None:
    session("inspect", OPS)
    page = open_page("#local%3Ainspect")
    drawn(page)
    assert page.locator("#session .node").count() == 5
    page.locator('[data-node="n1"]').click()
    panel = page.locator(".node-panel")
    panel.get_by_role("img", name="Histogram of 3 elements").wait_for()
    assert "train.py:1" in panel.inner_text()
    panel.get_by_role("button", name="Gradient of this").click()
    panel.locator('.answer[data-source="w"] .histogram').wait_for()
    panel.get_by_role("button", name="x: float32[3]").click()  # where its input comes from
    panel.locator("h3", has_text="n0").wait_for()
    page.locator('[data-node="n2"]').focus()
    page.keyboard.press("Enter")
    panel.locator("h3", has_text="round").wait_for()
    panel.get_by_role("button", name="Gradient of this").click()
    panel.locator(".answer.none", has_text="None").wait_for()
    panel.get_by_role("button", name="Explain").click()
    panel.locator(".answer.none", has_text="non_differentiable_op").wait_for()
    facts = ok(session.client.get("/v1/sessions/inspect/tapes/t")).json()
    assert facts["consumed"] is False


def test_a_session_that_works_through_functions_shows_them(open_page: Opener, session: Any) -> None:
    from playwright.sync_api import expect

    path = session("works")
    page = open_page("#local%3Aworks")
    page.locator(".tapes", has_text="No tapes").wait_for()
    ok(session.client.post(f"{path}/variables", json={"id": "w", "value": [[1.5, 2.0], [3.0, 4.0]]}))
    steps = [
        {"op": "matmul", "inputs": ["x", "w"], "outputs": ["p"]},
        {"op": "reduce_sum", "inputs": ["p"], "outputs": ["loss"], "attrs": {"axis": [0]}},
    ]
    body = {"id": "model", "inputs": ["x", "w"], "outputs": ["loss"], "steps": steps}
    ok(session.client.post(f"{path}/functions", json=body))
    wrong = session.client.post(f"{path}/functions/model/call", json={"inputs": {"x": [[1.0, 2.0, 3.0]], "w": "w"}})
    assert wrong.status_code == 422
    expect(page.locator('[data-fact="problems"]')).to_have_text("1", timeout=PATIENCE)
    expect(page.locator('[data-fact="requests"]')).to_have_text(re.compile(r"[1-9][0-9]*"), timeout=PATIENCE)
    page.locator(".problem a", has_text=wrong.json()["code"]).wait_for()
    page.get_by_role("button", name="Refresh").click()
    row = page.locator('[data-function="model"]')
    row.locator("summary").click()
    lines = "p = matmul(x, w)\nloss = reduce_sum(p, axis=[0])"
    expect(row.locator("pre")).to_have_text(lines, timeout=PATIENCE)
    expect(page.locator('[data-variable="w"]')).to_contain_text("float32[2×2] · 16 B · version 0")
    ok(session.client.delete(path))


def test_a_function_of_a_session_is_published(open_page: Opener, session: Any) -> None:
    from playwright.sync_api import expect

    path = session("publisher")
    ok(session.client.post(f"{path}/variables", json={"id": "w", "value": [1.5, -0.5]}))
    ok(session.client.post(f"{path}/functions", json={"id": "line", "text": "error = mean((x @ w - y)**2)"}))
    step = {"do": "assign", "variable": "v", "value": "x"}
    body = {"id": "moves", "inputs": ["x", "v"], "outputs": ["x"], "steps": [step]}
    ok(session.client.post(f"{path}/functions", json=body))
    page = open_page("#local%3Apublisher")
    moves, row = page.locator('[data-function="moves"]'), page.locator('[data-function="line"]')
    moves.locator("summary").click()
    expect(moves.get_by_role("button")).to_have_count(0, timeout=PATIENCE)  # it would have a state
    row.locator("summary").click()
    row.get_by_role("button", name="Publish…").click()
    form = page.get_by_role("dialog", name="Publish line")
    expect(form.get_by_label("w", exact=True)).to_have_value("= w")
    form.get_by_label("y", exact=True).fill("a vector")
    form.get_by_role("button", name="Publish").click()
    expect(form.get_by_role("alert")).to_contain_text("a vector is neither a declaration")
    form.get_by_label("x", exact=True).fill("float32[n, 3]")
    form.get_by_label("y", exact=True).fill("[n]")
    form.get_by_role("button", name="Publish").click()
    expect(form.get_by_role("alert")).to_contain_text("invalid_request", timeout=PATIENCE)  # w has two elements
    form.get_by_label("x", exact=True).fill("float32[n, 2]")
    form.get_by_role("button", name="Publish").click()
    expect(form.get_by_role("status")).to_contain_text("Published: line @", timeout=PATIENCE)
    call = {"inputs": {"x": [[0.5, 1.5], [2.5, 0.5]], "y": [0.5, 3.5]}}
    answer = ok(session.client.post("/v1/published/line/value_and_gradient", json=call)).json()
    assert answer["values"]["error"]["data"] == 0.125
    form.get_by_role("button", name="Close").click()
    expect(form).to_have_count(0)
    ok(session.client.delete("/v1/published/line"))
    ok(session.client.delete(path))


def test_the_rate_of_requests_is_that_of_others(open_page: Opener) -> None:
    rates = """async () => {
        const { Rate, read } = await import(new URL("static/console/reads.js", location));
        let now = 0;
        performance.now = () => now;
        const rate = new Rate();
        const shown = [rate.of(7)];
        await read("v1/sessions");
        now = 2000;
        return [...shown, rate.of(8), rate.of(12)];
    }"""
    assert open_page().evaluate(rates) == ["7", "8, 0.0/s", "12, 2.0/s"]


def test_a_running_loop_shows_its_progress_and_is_cancelled(open_page: Opener, session: Any) -> None:
    from playwright.sync_api import expect

    path = session("busy", OPS)
    page = open_page()
    choose(page, "busy")
    drawn(page)
    answers: list[httpx.Response] = []
    loop = threading.Thread(target=lambda: answers.append(session.client.post(f"{path}/batch", json=LOOP)))
    loop.start()
    running = page.locator(".running")
    expect(running).to_contain_text(re.compile(r"[1-9][0-9,]* of 1,000,000,000"), timeout=PATIENCE)
    page.locator('.tapes[data-state="waiting"]').wait_for()
    assert page.locator("#session .node").count() == 5  # the picture from before
    running.get_by_role("button", name="Cancel").click()
    expect(running).to_be_hidden(timeout=PATIENCE)
    drawn(page)
    loop.join()
    assert ok(answers[0]).json()["failure"]["code"] == "cancelled"


def test_a_parked_session_wakes_by_use_and_a_damaged_one_says_what_to_do(open_page: Opener, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    server = Server(Settings(data_dir=str(tmp_path), log_level="error"))
    with server.running(), server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "night"}))
        ok(http.post("/v1/sessions/night/variables", json={"id": "w", "value": [0.5, -1.5]}))
        page = open_page("#local%3Anight", url=server.url)
        page.locator('[data-variable="w"]').wait_for()
        page.get_by_role("button", name="Park", exact=True).click()
        note = page.locator(".note")
        expect(note).to_have_attribute("data-state", "parked", timeout=PATIENCE)
        expect(page.locator(".contents")).to_be_hidden()
        assert ok(http.get("/v1/sessions/night")).json()["state"] == "parked"  # the page does not wake it
        note.get_by_role("button", name="Wake it").click()
        page.locator('[data-variable="w"]').wait_for()
        expect(note).to_be_hidden()
        ok(http.post("/v1/sessions/night/park"))
        for base in [path for path in tmp_path.rglob("base-*") if path.stat().st_size]:
            base.write_bytes(base.read_bytes()[:-1] + b"?")
        note.get_by_role("button", name="Wake it").click()
        expect(note).to_have_attribute("data-state", "damaged", timeout=PATIENCE)
        expect(note).to_contain_text("teletape sessions rescue local:night --data-dir PATH --out DIR")
        expect(note).to_contain_text("the base of the log")


def test_sessions_come_are_extended_and_end(open_page: Opener, session: Any) -> None:
    from playwright.sync_api import expect

    page = open_page()
    page.locator("#state.live").wait_for()
    path = session("brief")
    choose(page, "brief")
    page.locator(".tapes", has_text="No tapes").wait_for()
    page.get_by_label("Keep for").select_option("28800")
    page.get_by_role("button", name="Extend").click()
    expect(page.locator('[data-fact="ends without work"]')).to_have_text("in 8 h", timeout=PATIENCE)
    page.get_by_role("button", name="End session").click()
    page.get_by_role("button", name="Keep it").click()
    ok(session.client.get(path))
    page.get_by_role("button", name="End session").click()
    page.locator("#confirm-end").click()
    page.locator(".pane", has_text="This session has ended: it was deleted.").wait_for()
    expect(page.locator('[data-session="local:brief"].session-row')).to_have_count(0, timeout=PATIENCE)
    assert session.client.get(path).status_code == 410


def test_a_tape_of_ten_thousand_ops_opens_group_by_group(open_page: Opener, session: Any) -> None:
    ops = [{"op": "identity", "inputs": ["w"], "outputs": ["x0"]}]
    ops += [{"op": ("sin", "tanh")[i % 2], "inputs": [f"x{i}"], "outputs": [f"x{i + 1}"]} for i in range(10_000)]
    session("long", ops)
    page = open_page("#local%3Along")
    drawn(page)
    assert page.locator("#session .node").count() <= 60
    page.locator("#session .node.group").nth(1).click()
    page.locator(".trail button", has_text="whole tape").wait_for()
    while page.locator("#session .node.group").count():
        before = page.locator(".trail").inner_text()
        page.locator("#session .node.group").nth(1).dispatch_event("click")
        page.wait_for_function("before => document.querySelector('.trail').innerText !== before", arg=before)
    page.locator("#session .node.op").nth(1).dispatch_event("click")
    page.locator(".node-panel .histogram").wait_for()
    page.locator(".trail button", has_text="whole tape").click()
    page.locator("#session .node.group").first.wait_for()


def test_a_hundred_sessions(open_page: Opener, session: Any) -> None:
    from playwright.sync_api import expect

    for number in range(100):
        session(f"many-{number}")
    page = open_page()
    expect(page.locator("#count")).to_have_text("100", timeout=PATIENCE)
    page.get_by_label("Filter sessions").fill("many-7")
    expect(page.locator("#rows li:visible")).to_have_count(11, timeout=PATIENCE)
    page.locator("#rows li:visible button").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator('.pane[data-session="local:many-70"]').wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_page_is_small_and_fits_every_width(open_page: Opener, session: Any) -> None:
    session("narrow", OPS)
    for width, dark in ((390, True), (2560, False)):
        page = open_page("#local%3Anarrow", width=width, dark=dark)
        drawn(page)
        page.locator('[data-node="n1"]').click()
        page.locator(".node-panel .histogram").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        moved = page.evaluate(
            "performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))"
            ".reduce((sum, entry) => sum + entry.transferSize, 0)"
        )
        assert 10_000 < moved < MOST_BYTES
        assert page.evaluate("performance.getEntriesByType('paint').length > 0")


def test_a_server_with_keys_asks_for_one_and_an_admin_sees_all(open_page: Opener) -> None:
    settings = Settings(api_keys=KEYS, admins=frozenset({"ann"}), log_level="error")
    with Server(settings).running() as server, server.client("bob") as bob:
        ok(bob.post("/v1/sessions", json={"id": "his"}))
        page = open_page(url=server.url)
        page.locator("#key").fill("wrong key")
        page.get_by_role("button", name="Use it").click()
        page.locator("#key-fault", has_text="the key of the request is unknown").wait_for()
        page.locator("#key").fill(KEYS["ann"])
        page.get_by_role("button", name="Use it").click()
        page.locator('[data-session="bob:his"].session-row').click()
        page.get_by_role("button", name="End session").click()
        page.locator("#confirm-end").click()
        page.locator(".pane", has_text="This session has ended").wait_for()
        assert bob.get("/v1/sessions/his").status_code == 410


LISTS = """async () => {
    const names = (path) => import(new URL(`static/console/${path}.js`, location));
    const [bars, keys, audit] = await Promise.all([names("bars"), names("keys"), names("audit")]);
    return [Object.keys(bars.LIMITS), Object.keys(keys.SCOPES), audit.ACTIONS];
}"""


def test_an_operator_and_a_user_see_their_parts(open_page: Opener, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    settings = Settings(
        api_keys=KEYS, admins=frozenset({"ann"}), data_dir=str(tmp_path), log_level="error", shutdown_grace=0.1
    )
    with Server(settings).running() as server, server.client("ann") as ann, server.client("bob") as bob:
        ok(ann.put("/v1/admin/limits/bob", json={"sessions": 4, "compute_seconds_1d": 100}))
        ok(bob.post("/v1/sessions", json={"id": "his"}))
        budgets = server.app.state.identity.budgets
        for account, seconds in (("bob", 90.0), ("ann", 30.0)):
            budgets.charge(account, Use(seconds))
        page = open_page("#/keys", url=server.url)
        sign_in(page, "ann")
        assert page.evaluate(LISTS) == [[*Limits._fields], [*SCOPES], [*ACTIONS]]

        page.get_by_role("button", name="New key…").click()
        form = page.get_by_role("dialog", name="New key")
        form.get_by_label("Name", exact=True).fill("laptop")
        form.get_by_label("Owner", exact=True).fill("cleo")
        form.get_by_label("Group").fill("not a group")
        form.get_by_role("button", name="Create").click()
        expect(form).to_be_visible(timeout=PATIENCE)  # the browser itself refuses the group
        form.get_by_label("Group").fill("lab")
        form.get_by_role("button", name="Create").click()
        secret = form.get_by_label("The new key").input_value()
        with server.client(None, Authorization=f"Bearer {secret}") as cleo:
            me = ok(cleo.get("/v1/me")).json()
            assert (me["owner"], me["group"], me["scopes"]) == ("cleo", "lab", ["sessions", "call", "publish"])
            form.get_by_role("button", name="Done").click()
            page.wait_for_function("secret => !document.documentElement.outerHTML.includes(secret)", arg=secret)
            page.get_by_role("button", name=f"Replace {me['key']}").click()
            page.get_by_label("The former one ends").select_option("at once")
            page.get_by_role("dialog").get_by_role("button", name="Replace").click()
            page.get_by_label("The new key").wait_for()
            page.get_by_role("button", name="Done").click()
            assert cleo.get("/v1/me").status_code == 401
        page.get_by_role("button", name=re.compile("Revoke ")).click()
        page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        expect(page.locator("tbody tr")).to_have_count(2, timeout=PATIENCE)  # those of the environment
        page.get_by_label("those that have ended too").check()
        expect(page.locator("tbody tr")).to_have_count(4, timeout=PATIENCE)

        page.get_by_role("link", name="Budgets").click()
        row = page.locator('[data-row="bob"]')
        bar = row.get_by_role("meter", name="Computing in 1 day")
        expect(bar).to_have_attribute("aria-valuenow", "90", timeout=PATIENCE)
        expect(bar).to_have_attribute("aria-valuetext", re.compile("90[.0-9]* s of 1.67 min"), timeout=PATIENCE)
        row.get_by_role("button", name="Limits of bob").click()
        page.get_by_role("spinbutton", name="Computing in 1 day").fill("0.05")
        page.get_by_role("button", name="Set limits").click()
        expect(bar).to_have_attribute("aria-valuenow", "50", timeout=PATIENCE)
        assert ok(bob.get("/v1/me")).json()["use"]["own_limits"] == {"sessions": 4, "compute_seconds_1d": 180}

        page.get_by_role("link", name="Usage").click()
        totals = page.get_by_label("Processors that computed: totals")
        expect(totals.locator("li")).to_have_text([re.compile("bob90[.0-9]* s"), "ann30 s"], timeout=PATIENCE)
        expect(page.get_by_text("Memory of the machine: ")).to_have_text(
            re.compile("[0-9.]+ [KMG]iB are free, [0-9.]+ [KMG]?i?B of that reserved"), timeout=PATIENCE
        )
        page.get_by_label("Time shown").select_option("days")
        expect(totals.locator("li")).to_have_count(2, timeout=PATIENCE)
        page.get_by_role("link", name="Audit").click()
        page.get_by_label("Action").select_option("key.revoked")
        expect(page.locator("tbody tr")).to_have_count(1, timeout=PATIENCE)

        page = open_page("#/usage", url=server.url, width=360, dark=True)
        sign_in(page, "bob")
        expect(page.get_by_label("Processors that computed: totals").locator("li")).to_have_text(
            [re.compile("bob90[.0-9]* s"), "others30 s"]
        )
        expect(page.get_by_role("link", name="Audit")).to_be_hidden(timeout=PATIENCE)
        page.get_by_role("link", name="Budgets").click()
        expect(page.get_by_role("meter", name="Computing in 1 day")).to_have_attribute(
            "aria-valuenow", "50", timeout=PATIENCE
        )
        expect(page.get_by_role("heading")).to_have_text(["What you may use", "What you have used"], timeout=PATIENCE)
        page.get_by_role("link", name="Keys").click()
        expect(page.locator("tbody tr")).to_have_count(1, timeout=PATIENCE)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def sign_in(page: "Page", owner: str) -> None:
    page.locator("#key").fill(KEYS[owner])
    page.get_by_role("button", name="Use it").click()
