"""The page of published functions in a real browser, and the playground's way to publish."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import httpx
import pytest

from serving import Server, ok
from teletape_server.settings import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

LINE = {
    "function": {"text": "error = mean((x @ w - y)**2)"},
    "inputs": {"x": {"shape": ["n", 2]}, "y": {"shape": ["n"]}},
    "weights": {"w": [1.5, -0.5]},
    "description": "The error of a line",
    "examples": [{"inputs": {"x": [[0.5, 1.5], [2.5, 0.5]], "y": [0.5, 3.5]}}],
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(Settings(log_level="error")).running() as running:
        yield running


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of which nothing complains."""
    complaints: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(30_000)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    assert not complaints


def test_a_function_is_called_by_a_form_and_plotted(server: Server, page: Page) -> None:
    ok(httpx.put(f"{server.url}/v1/published/line", json=LINE, timeout=60))
    page.goto(f"{server.url}/published")
    page.locator(".session-row", has_text="The error of a line").click()
    page.wait_for_selector("#plot svg .line.gradient", state="attached")
    assert page.locator("td.value").inner_text() == "0.125"
    assert [cell.split(", ")[0] for cell in page.locator("td.gradient").all_inner_texts()] == ["[[−0.75", "[0.5"]
    page.fill("#input-y", "[0.5, 4.5]")
    page.click("#ask")
    page.locator("td.value", has_text="0.625").wait_for()
    page.select_option("#over", "y:1")
    page.locator("#plot .axis-name", has_text="y").wait_for()
    page.fill("#input-y", "[0.5, 4.5")
    page.click("#ask")
    page.get_by_role("alert").filter(has_text="expected a number or nested lists").wait_for()
    page.fill("#input-y", "[0.5, 4.5, 1]")
    page.click("#ask")
    page.get_by_role("alert").filter(has_text="y").wait_for()


def test_the_playground_publishes_its_formula(server: Server, page: Page) -> None:
    page.goto(server.url)
    page.wait_for_selector("#publish-inputs input")
    page.fill("#publish-name", "from-the-page")
    page.select_option("#publish-for", "everybody")
    page.click("#publish")
    page.locator("#publish-text a").click()
    page.wait_for_selector("#plot svg .line.value", state="attached")
    facts = ok(httpx.get(f"{server.url}/v1/published/from-the-page")).json()
    assert facts["visibility"] == "everybody"
    assert [row["name"] for row in facts["version"]["inputs"]] == ["x"]
    answer = httpx.post(f"{server.url}/v1/published/from-the-page/call", json={"inputs": {"x": 0.0}})
    assert ok(answer).json()["values"]["y"]["data"] == 0.0
