"""Every program on every page runs as pasted and prints what the page shows: Python alone in an empty namespace,
inside the process and over HTTP; curl and JavaScript against a server.

In an `sh` or `js` block a comment line that begins with `# ` or `// ` and follows a command shows output: a whole JSON
object, or a text that is printed.
"""

import json
import re
import shutil
from pathlib import Path

import pytest

import teletape as tf
from programs import json_objects, load_script, run

ROOT = Path(__file__).resolve().parents[2]


pages = load_script("pages")


def parameters(*languages: str) -> list:
    return [
        pytest.param(block, id=f"{block.page}:{block.line}")
        for page in pages.pages()
        for language in languages
        for block in pages.blocks(page, language)
        if not block.is_excerpt
    ]


GENERATED = ("docs/reference.md", "docs/reference-functions.md")
PYTHON, SHELL, JAVASCRIPT = parameters("python"), parameters("sh"), parameters("js")


def test_no_block_is_of_a_language_that_nothing_runs() -> None:
    fences = [fence for page in pages.pages() for fence in re.findall(r"^```(.*)$", (ROOT / page).read_text(), re.M)]
    assert set(fences) <= {"", "python", "text", "sh", "js", "json", "mermaid"}


@pytest.mark.parametrize("block", PYTHON)
@pytest.mark.parametrize("where", ["in the process", "over HTTP"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of the zeros and infinities that the pages explain
def test_a_python_program_prints_what_its_page_shows(block, where: str, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue("server_url") if where == "over HTTP" or pages.ADDRESS in block.source else None
    with tf.connect(url, local=where != "over HTTP"):
        printed = pages.run(block, url or pages.ADDRESS).splitlines()
    assert block.shown, "a program that prints nothing shows nothing"
    assert len(printed) == len(block.shown), printed
    assert [pair for pair in zip(block.shown, printed, strict=True) if not pages.agree(*pair)] == []


@pytest.mark.parametrize("block", SHELL)
def test_a_shell_program_prints_what_its_page_shows(block, server_url: str) -> None:
    assert pages.ADDRESS in block.source, "the page's address is replaced by the test's server"
    for _ in range(2):  # a reader may paste it a second time
        check(block, run(["bash", "-eu"], text=block.source.replace(pages.ADDRESS, server_url)))


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
@pytest.mark.parametrize("block", JAVASCRIPT)
def test_a_javascript_program_prints_what_its_page_shows(block, server_url: str) -> None:
    check(block, run(["node", "--input-type=module"], text=block.source.replace(pages.ADDRESS, server_url)))


def check(block, printed: str) -> None:
    shown = re.findall(r"^(?:#|//) (.+)$", block.source.partition("\n")[2], re.M)
    assert shown, "a program that shows no output proves nothing"
    for line in shown:
        if line.startswith("{"):
            answers = map(json.dumps, json_objects(printed))
            assert any(pages.agree(json.dumps(json.loads(line)), answer) for answer in answers), (line, printed)
        else:
            assert pages.shows(printed, line), (line, printed)
    for answer in json_objects(printed):
        is_shown = any(line == f'"code": "{answer.get("code")}"' for line in shown)
        assert "code" not in answer or is_shown, f"a request of the page is refused: {answer}"


@pytest.mark.parametrize(
    ("shown", "printed", "agree"),
    [
        ("[1.2908269 -3.0e-08]", "[1.2908273 -1.2e-08]", True),
        ("loss 0.0125 after 12 steps", "loss 0.0126 after 12 steps", True),
        ("loss 0.0125", "loss 0.0127", False),
        ("1.5", "1.6", False),
        ('{"data": 1e-08}', '{"data": 0.5}', False),
        ("3e-05 and 10.5", "3.00001e-05 and 10.5", True),
        ("0.25 0.5", "0.25", False),
        ("1.29082", "1.29182", False),
        ("12", "13", False),
        ("y = 1.0", "z = 1.0", False),
        ("[1. 2.]", "[1. 3.]", False),
    ],
)
def test_lines_agree_but_for_roundings(shown: str, printed: str, agree: bool) -> None:
    assert pages.agree(shown, printed) is agree
    assert pages.shows(f'{{"x": {printed}}}', shown) is agree


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(block, id=f"{block.page}:{block.line}")
        for page in pages.pages()
        for block in pages.blocks(page, "python")
        if block.is_excerpt
    ],
)
def test_an_excerpt_is_what_its_file_says(block) -> None:
    assert block.source == block.excerpt, "run make pages"


def test_the_picture_of_a_tape_is_what_the_software_draws() -> None:
    with tf.connect(local=True):
        svg = pages.picture()
    assert pages.texts(svg) == pages.texts(pages.PICTURE.read_text(encoding="utf-8")), "run make pages"


@pytest.mark.parametrize("page", pages.pages())
def test_a_page_is_wrapped_and_its_links_lead_to_files(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    long = [
        line
        for line in prose.splitlines()
        if len(line) > 120 and not re.match(r"\||    |#|!\[|\*\*\w+/|.*https?://", line)
    ]
    assert not long or page in GENERATED
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", prose):
        if "://" not in target:
            assert ((ROOT / page).parent / target).exists(), f"{page}: {target}"


@pytest.mark.parametrize("page", pages.pages())
def test_a_page_has_no_phrase_for_which_there_is_a_plain_word(page: str) -> None:
    """After, also, reports, n, if: GENERATED pages repeat docstrings, which test_names counts."""
    text = (ROOT / page).read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$|^\|.*?$|`[^`]*`", "", text, flags=re.M | re.S)
    phrases = r"\b(?:beside|tells|so many|of those that|where there (?:is|are)|nobody|somebody|is behind)\b"
    assert re.findall(phrases, prose) == [] or page in GENERATED
