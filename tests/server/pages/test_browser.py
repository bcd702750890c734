"""The API page in a real browser: tried as a person tries it, and asking no host but its own for anything."""

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

PATIENCE = 30_000  # milliseconds: the browser may be busy with itself


class Seen:
    """The requests and the errors of the page."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def page(browser: "Browser", server_url: str, seen: Seen) -> "Iterator[Page]":
    """The API page, filled, of the test's own."""
    api_page = browser.new_page()
    api_page.on("request", lambda request: seen.requests.append(request.url))
    api_page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    api_page.on("console", lambda message: seen.complaints.append(message.text) if message.type == "error" else None)
    fill(api_page, server_url)
    yield api_page
    api_page.close()


@pytest.fixture(scope="module")
def unchanged_page(browser: "Browser", server_url: str) -> "Iterator[Page]":
    """The API page, filled, for all tests that leave it as it was: it takes seconds to fill."""
    api_page = browser.new_page()
    fill(api_page, server_url)
    yield api_page
    api_page.close()


def fill(page: "Page", server_url: str) -> None:
    """Opens the API page, and waits until its operations are there."""
    page.set_default_timeout(PATIENCE)
    page.goto(f"{server_url}/docs")
    page.locator(".opblock").first.wait_for()


def execute(page: "Page", operation: str) -> Any:
    """Opens the operation, sends its example unchanged, and reads the answer from the page."""
    block: Locator = page.locator(f'.opblock[id$="-{operation}"]')
    if "is-open" not in (block.get_attribute("class") or ""):  # the one that the address names is open already
        block.locator(".opblock-summary-control").click()
    block.locator("button.execute").click()
    answer = block.locator(".live-responses-table")
    answer.wait_for()
    status = answer.locator("tbody .response-col_status").first.inner_text()
    shown = answer.locator("tbody .response-col_description pre").first.inner_text()
    assert re.match(r"20[0-9]", status), f"{operation}: {status} {shown}"
    return json.loads(shown)


def test_a_gradient_by_hand_and_the_picture_of_its_graph(page: "Page", seen: Seen, server_url: str) -> None:
    """Once; tests/server/contract/test_openapi.py sends each example of the page twice."""
    assert execute(page, "sessions-create")["id"] == "demo"
    assert execute(page, "variables-create")["dtype"] == "float32"
    execute(page, "tensors-create")
    assert execute(page, "tapes-create")["persistent"] is True
    execute(page, "tapes-watch")
    recorded = execute(page, "tapes-record")
    assert recorded["values"]["loss"]["data"] == 0.5 * 4 + 1.5 * 5 + 2.5 * 6
    [dw, dx] = execute(page, "tapes-gradient")["derivatives"]
    assert (dw["source"], dw["value"]["data"]) == ("w", [4, 5, 6])
    assert (dx["source"], dx["value"]["data"]) == ("x", [0.5, 1.5, 2.5])
    assert execute(page, "tapes-graph")["nodes"]
    picture = page.locator("img.picture")
    picture.wait_for()
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 50

    here = urlsplit(server_url).netloc
    elsewhere = [url for url in seen.requests if urlsplit(url).scheme != "data" and urlsplit(url).netloc != here]
    assert elsewhere == []
    assert seen.complaints == []
    assert sum(urlsplit(url).path.endswith("/gradient") for url in seen.requests) == 1


def test_the_api_page_begins_with_run_and_an_explained_none(page: "Page") -> None:
    assert page.locator(".opblock").first.get_attribute("id") == "operations-run-run-run"
    page.locator('.opblock[id$="-run-run"] .opblock-summary-control').click()
    examples = page.locator(".examples-select-element").first
    assert examples.locator("option").all_inner_texts()[:2] == ["gradient", "explained_none"]
    examples.select_option("explained_none")
    answer = execute(page, "run-run")
    assert answer["values"] == {"dx": None}
    assert answer["results"]["4"]["explanations"][0]["code"] == "non_differentiable_op"


def test_parameters_of_binary_bodies_are_shown_on_demand(page: "Page") -> None:
    page.locator('.opblock[id$="-variables-create"] .opblock-summary-control').click()
    names = page.locator('.opblock[id$="-variables-create"] .parameter__name')
    names.first.wait_for()
    assert not [text for text in names.all_inner_texts() if "Tensor-Dtype" in text]
    page.get_by_label("Show parameters that only binary bodies need").check()
    names.filter(has_text="Tensor-Dtype").wait_for()


def test_the_filter_finds_words_of_summaries_and_descriptions(page: "Page") -> None:
    page.get_by_placeholder("Filter by words").fill("hessian vector")
    page.locator('.opblock[id$="-variables-create"]').wait_for(state="detached")
    shown = page.locator(".opblock").evaluate_all("all => all.map((block) => block.id)")
    assert shown
    assert {name.rsplit("-", 1)[1] for name in shown} == {"hvp", "sparse_hessian"}, shown


def test_problems_are_collapsed_and_lead_to_their_pages(page: "Page", server_url: str) -> None:
    page.locator('.opblock[id$="-run-run"] .opblock-summary-control').click()
    rows = page.locator(".response.problems")
    rows.first.wait_for()
    assert rows.locator("pre").count() == 0
    rows.get_by_role("link", name="malformed_json").click()
    page.wait_for_url(f"{server_url}/problems/malformed_json")
    assert page.locator("h1").inner_text() == "Malformed JSON"


def test_a_server_without_keys_shows_no_padlocks(unchanged_page: "Page") -> None:
    locks = unchanged_page.locator(".authorization__btn, .btn.authorize").all()
    assert [lock.is_visible() for lock in locks].count(True) == 0


def test_the_page_is_dark_where_the_system_is(unchanged_page: "Page") -> None:
    def brightness() -> int:
        return unchanged_page.evaluate("parseInt(getComputedStyle(document.body).backgroundColor.slice(4))")

    assert brightness() > 200
    unchanged_page.emulate_media(color_scheme="dark")
    unchanged_page.locator("html.dark-mode").wait_for()
    assert brightness() < 60
    unchanged_page.emulate_media(color_scheme="light")
    unchanged_page.locator("html:not(.dark-mode)").wait_for()
    assert brightness() > 200


def test_operations_are_shown_before_any_script_has_run(browser: "Browser", server_url: str) -> None:
    page = browser.new_page()
    page.route("**/*.js", lambda route: route.abort())
    page.goto(f"{server_url}/docs")
    assert page.locator(".operations li").count() > 40
    assert page.locator(".operations li").first.inner_text().split()[:2] == ["POST", "/v1/run"]
    page.close()


def test_the_api_page_is_in_the_order_of_the_walk(unchanged_page: "Page") -> None:
    import httpx
    import walk

    document = httpx.get(unchanged_page.url.removesuffix("/docs") + "/openapi.json", trust_env=False).json()
    expected = [operation["operationId"] for _, _, operation in walk.operations(document)]
    ids = unchanged_page.locator(".opblock").evaluate_all("all => all.map(one => one.id)")
    assert [id.removeprefix("operations-").partition("-")[2] for id in ids] == expected
