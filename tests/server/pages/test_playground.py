"""The playground in a real browser, used as a person uses it: type, slide, read the gradient, copy, send a link."""

import base64
import json
import re
import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx
import pytest

from programs import run
from serving import KEYS, Server
from teletape_server.settings import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

PATIENCE = 30_000  # milliseconds: the browser may be busy with itself
MOST_BYTES = 700_000
#: What a preset shows: results by title, and the codes of its explanations.
PRESETS = {
    "none-by-round": ({"∂loss/∂x": "None"}, ["non_differentiable_op"]),
    "dead-relu": ({"loss": "0", "∂loss/∂w": "0", "∂loss/∂b": "0"}, ["saturated"]),
    "saturated-sigmoid": ({"y": "1", "∂y/∂x": "0"}, ["saturated"]),
    "double-where": ({"unsafe": "0", "∂unsafe/∂x": "NaN"}, ["infinity", "zero_times_infinity"]),
    "newton": ({"root": "1.414", "∂root/∂a": "0.3536"}, []),
    "jacobian": ({"J: ∂p/∂z": "float32[6×6]"}, []),
    "hvp": ({"f": "58.5", "H·v, x": "[2, 300]"}, []),
    "maml": ({"test_loss": "4.84", "∂test_loss/∂w": "−3.52", "∂test_loss/∂rate": "−13.2"}, []),
    "classifier": ({"loss": "0.5596"}, []),
    "loop": ({}, []),
}


Opener = Callable[..., "Page"]


@pytest.fixture
def open_page(browser: "Browser", server_url: str) -> Iterator[Opener]:
    """Opens the page; after the test nothing has complained, and no request has gone to another host."""
    requests: list[str] = []
    complaints: list[str] = []
    contexts = []

    def opener(address: str = "", *, url: str = server_url, width: int = 1280, dark: bool = False) -> "Page":
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.goto(f"{url}/{address}")
        return page

    yield opener
    for context in contexts:
        context.close()
    hosts = {urlsplit(url).hostname for url in requests if urlsplit(url).scheme != "data"}
    assert hosts == {"127.0.0.1"}
    # Chromium writes a line for each refusal, which the page shows in its own words.
    assert [text for text in complaints if not text.startswith("Failed to load resource")] == []


def shows(page: "Page", title: str, text: str) -> None:
    """Waits until the result of that title is that text."""
    from playwright.sync_api import expect

    expect(page.locator(f'[data-result="{title}"] output')).to_have_text(text, timeout=PATIENCE)


def write(page: "Page", text: str) -> None:
    page.locator("#editor .cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


# ------------------------------------------------------------------------------------------------------------- the page
def test_type_slide_and_read_the_gradient(open_page: Opener) -> None:
    page = open_page()
    shows(page, "y", "1.819")
    shows(page, "∂y/∂x", "0.077")
    page.locator('[data-input="x"] input[type=range]').fill("-3")
    shows(page, "∂y/∂x", "2.829")
    write(page, "y = a * x ** 2\nloss = y - 1")
    page.locator('[data-input="a"] input.number').fill("0.5")
    page.locator('[data-input="x"] input.number').fill("4")
    shows(page, "loss", "7")
    shows(page, "∂loss/∂x", "4")
    page.locator("#target").select_option("y")
    shows(page, "∂y/∂a", "16")
    page.locator('[data-input="x"] input.number').fill("[1, 2]")  # a number may become a vector
    shows(page, "∂y/∂x", "[1, 2]")
    page.locator('[data-input="x"] [aria-label="x[1]"]').fill("3")
    shows(page, "∂y/∂x", "[1, 3]")
    page.get_by_role("radio", name="Hessian", exact=True).click()
    shows(page, "∂²y/∂a∂x", "[2, 6]")
    assert page.locator("#matrix rect").count() > 4
    assert page.locator("#plot .line").count() >= 2


def test_names_of_the_text_are_never_replaced_by_ops(open_page: Opener) -> None:
    page = open_page()
    shows(page, "y", "1.819")
    page.locator("#editor .cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    options = page.locator("#editor .cm-tooltip-autocomplete li")
    page.keyboard.type("N2 = x*2")
    page.keyboard.press("Enter")
    page.keyboard.type("y = 3*N2")
    page.keyboard.press("Control+Space")
    options.first.wait_for()
    page.keyboard.press("Enter")  # with a list of options open, and none chosen
    page.keyboard.type("z = N")
    options.first.wait_for()
    assert options.first.inner_text().startswith("N2"), "names of the text come first"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    text = page.locator("#editor .cm-line").all_inner_texts()
    assert text == ["N2 = x*2", "y = 3*N2", "z = N2"], "a choice is taken"
    page.keyboard.type(" + dep")
    options.first.wait_for()
    names = [option.split("(")[0].strip() for option in options.all_inner_texts()]
    assert names.index("dependency") > names.index("depth_to_space"), "ops without a name in TensorFlow come last"


def test_every_preset(open_page: Opener) -> None:
    page = open_page()
    listed = page.locator("#gallery a").evaluate_all("links => links.map((link) => link.hash.slice(1))")
    assert listed == ["", *PRESETS]
    for name, (results, codes) in PRESETS.items():
        page.locator(f'#gallery a[href="#{name}"]').click()
        for title, text in results.items():
            shows(page, title, text)
        page.locator(f'#gallery a[href="#{name}"][aria-current]').wait_for()
        assert page.locator(".why").evaluate_all("all => all.map((box) => box.dataset.code)") == codes, name
        assert page.locator("#graph .node").count() > 1, name
        assert page.locator("#graph .node.cut").count() == (1 if codes else 0), name
        page.locator("body[aria-busy=false]").wait_for()
        assert page.url.endswith(f"#{name}")


def test_a_permalink_is_the_same_state(open_page: Opener) -> None:
    page = open_page("#hvp")
    shows(page, "H·v, x", "[2, 300]")
    page.locator('[data-input="v(x)"] [aria-label="v(x)[1]"]').fill("0")
    page.locator('[data-input="x"] [aria-label="x[0]"]').fill("0.5")
    shows(page, "H·v, x", "[−98, −200]")
    page.wait_for_url("**/#s=*")
    page.locator("body[aria-busy=false]").wait_for()
    other = open_page(page.url.rpartition("/")[2])
    shows(other, "H·v, x", "[−98, −200]")
    assert (
        other.locator("#editor .cm-content").inner_text().strip()
        == page.locator("#editor .cm-content").inner_text().strip()
    )


def test_what_is_copied_runs(open_page: Opener) -> None:
    page = open_page()
    shows(page, "y", "1.819")
    write(page, "w = [[1, 2], [3, 4]]\ny = sum(einsum('ij,jk->ik', w, w) * x) # it's")
    page.locator('[data-input="x"] input.number').fill("2")
    shows(page, "∂y/∂x", "54")
    commands = {"curl": ["bash"], "python": ["python3"], "javascript": ["node", "--input-type=module"]}
    if shutil.which("node") is None:
        del commands["javascript"]
    for language, command in commands.items():
        page.locator(f'[data-language="{language}"]').click()
        printed = run(command, text=page.locator("#code").inner_text())
        assert re.search(r"\b54(\.0)?\b", printed), printed
        assert re.search(r"\b108(\.0)?\b", printed), printed


def test_a_fault_is_marked_and_goes(open_page: Opener) -> None:
    page = open_page()
    shows(page, "y", "1.819")
    write(page, "y = sni(x)")
    page.get_by_text("there is no function sni; did you mean 'sin'?").first.wait_for()
    page.locator("#editor .cm-lintRange-error").wait_for()
    write(page, "y = cos(x)\nz = y @ x")
    page.locator('.why[data-code="invalid_argument"]').wait_for()
    assert (page.locator("#graph .node.cut").text_content() or "").startswith("@")
    explanation = page.locator("#explanations").inner_text()
    assert explanation.startswith("@ fails\n"), explanation
    assert "numpy_matmul" not in explanation
    write(page, "y = cos(x)")
    shows(page, "∂y/∂x", "−0.9093")
    assert page.locator("#fault").is_hidden()
    assert page.locator(".why").count() == 0


def test_a_program_with_a_loop_reports_progress_and_is_cancelled(open_page: Opener) -> None:
    page = open_page("#loop")
    page.get_by_role("button", name="Run").click()
    page.get_by_text(re.compile(r"[\d,]+ of 1,000,000 iterations")).wait_for()
    page.get_by_role("button", name="Cancel").click()
    page.locator('.why[data-code="cancelled"]').wait_for()
    program = page.locator("#code").inner_text().partition("-d '")[2].removesuffix("'")
    state = {"mode": "program", "text": program.replace("1000000", "2000").replace("3.7", "2.0")}
    page = open_page("#s=" + base64.urlsafe_b64encode(json.dumps(state).encode()).decode())
    page.get_by_role("button", name="Run").click()
    shows(page, "mean", "0.5")  # the logistic map with r = 2


def test_an_expression_can_be_read_as_a_program_and_back(open_page: Opener) -> None:
    page = open_page()
    shows(page, "∂y/∂x", "0.077")
    page.get_by_role("tab", name="JSON program").click()
    page.locator("#editor").get_by_text("tape.open").wait_for()
    shows(page, "∂y/∂x", "0.077")
    page.locator('[data-input="x"] input.number').fill("-3")
    shows(page, "∂y/∂x", "2.829")
    page.get_by_role("tab", name="Expression").click()
    shows(page, "∂y/∂x", "0.077")


def test_training_moves_the_boundary(open_page: Opener) -> None:
    page = open_page("#classifier")
    shows(page, "loss", "0.5596")
    before = page.locator("#boundary .boundary").get_attribute("d")
    page.locator("#steps").fill("60")
    page.get_by_role("button", name="Train", exact=True).click()
    page.get_by_text("Step 60 of 60").wait_for()
    page.get_by_role("button", name="Train", exact=True).wait_for()
    page.locator("body[aria-busy=false]").wait_for()
    assert float(page.locator('[data-result="loss"] output').inner_text()) < 0.35
    assert page.locator("#boundary .boundary").get_attribute("d") != before
    assert page.locator("#losses .line").count() == 1
    page.get_by_role("button", name="Start again").click()
    shows(page, "loss", "0.5596")


def test_a_logistic_regression_is_trained_and_its_copies_do_the_same(open_page: Opener) -> None:
    page = open_page()
    shows(page, "y", "1.819")
    data = "hours = [0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4]\npassed = [0, 0, 0, 1, 0, 1, 1, 1]"
    write(page, f"{data}\nw = 0\nb = 0\nloss = mean(sigmoid_cross_entropy(passed, hours * w + b))")
    shows(page, "loss", "0.6931")
    page.get_by_text("Gradient descent").click()
    for name in ("hours", "passed"):
        page.locator(f"#variables input[value={name}]").uncheck()
    page.locator("#rate").fill("1")
    page.get_by_role("button", name="Train", exact=True).click()
    page.get_by_text("Step 100 of 100").wait_for()
    shows(page, "loss", "0.3243")
    weight = float(page.locator('[data-input="w"] input.number').input_value())
    for language, command in {"curl": "bash", "python": "python3"}.items():
        page.locator(f'[data-language="{language}"]').click()
        assert f"{weight:.4f}"[:-1] in run([command], text=page.locator("#code").inner_text())


#: Is inside the picture: of each node of the graph.
INSIDE = """() => {
  const outer = document.querySelector("#graph svg").getBoundingClientRect();
  return [...document.querySelectorAll("#graph [data-node]")].map((node) => {
    const box = node.getBoundingClientRect();
    return box.left >= outer.left && box.right <= outer.right && box.top >= outer.top && box.bottom <= outer.bottom;
  });
}"""


def test_a_graph_of_two_dozen_nodes_opens_whole(open_page: Opener) -> None:
    page = open_page()
    shows(page, "y", "1.819")
    write(
        page,
        "a = sin(x)*x + 1\nb = exp(-a**2)\nc = tanh(b + w*x)\nd = log(1 + exp(c))\ne = sqrt(d*d + 1)\nf = a*e - b/c",
    )
    page.locator('[data-result="f"] output').wait_for(timeout=PATIENCE)
    inside = page.evaluate(INSIDE)
    assert len(inside) >= 24
    assert all(inside)


def test_the_keyboard_reaches_the_graph(open_page: Opener) -> None:
    from playwright.sync_api import expect

    page = open_page()
    shows(page, "y", "1.819")
    page.locator('#graph [data-node][tabindex="0"]').focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#graph [data-node]:focus")).to_have_attribute("aria-label", re.compile("sin computes"))
    page.keyboard.press("Enter")
    expect(page.locator("#details")).to_contain_text("0.9093")
    page.keyboard.press("Escape")
    expect(page.locator("#details")).to_be_hidden()


@pytest.mark.parametrize(("width", "dark"), [(390, False), (2560, True)])
def test_every_width_fits(open_page: Opener, width: int, dark: bool) -> None:
    page = open_page("#dead-relu", width=width, dark=dark)
    shows(page, "loss", "0")
    page.locator("body[aria-busy=false]").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background != "rgb(255, 255, 255)") == dark


def test_the_page_is_small(open_page: Opener) -> None:
    page = open_page()
    shows(page, "y", "1.819")
    sizes = page.evaluate(
        "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
        ".map((entry) => [entry.name, entry.encodedBodySize])"
    )
    assert len(sizes) > 15, "its modules are among them"
    assert sum(size for _, size in sizes) < MOST_BYTES, sizes
    assert page.evaluate("performance.getEntriesByName('first-contentful-paint').length") == 1  # docs/browser.md has it


def test_a_server_with_keys_asks_for_one(browser: "Browser", open_page: Opener) -> None:
    with Server(Settings(api_keys=KEYS)).running() as server:
        page = open_page(url=server.url)
        page.locator("#key").fill(next(iter(KEYS.values())))
        page.get_by_role("button", name="Use it").click()
        shows(page, "y", "1.819")
        assert "$TELETAPE_API_KEY" in page.locator("#code").inner_text()
        assert next(iter(KEYS.values())) not in page.content()


def test_a_page_that_is_left_ends_its_session(open_page: Opener, server_url: str) -> None:
    with httpx.Client(base_url=server_url, trust_env=False) as http:

        def sessions() -> set[str]:
            return {session["id"] for session in http.get("/v1/sessions").json()["sessions"]}

        before = sessions()
        page = open_page()
        shows(page, "y", "1.819")
        [mine] = sessions() - before
        page.goto(f"{server_url}/docs")
        while mine in sessions():  # until the server has read the request
            page.wait_for_timeout(20)
