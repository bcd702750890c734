"""CONTRIBUTING.md leads to files that exist: the map of the code, and every path in its prose."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAP = re.findall(r"^\| (?!where is|---)(.+?) \| (.+) \|$", PAGE, re.M)
#: The folders in which a short path of the prose may be.
PARENTS = ("", "engine/teletape_engine", "server/teletape_server")


def test_the_map_answers_twenty_questions_with_paths_that_exist() -> None:
    assert len(MAP) >= 20
    for question, answer in MAP:
        paths = re.findall(r"`([^`]+)`", answer)
        assert paths, question
        for path in paths:
            assert (ROOT / path).exists(), f"{question}: {path}"
            assert not path.endswith("/") or (ROOT / path).is_dir()


def test_every_path_of_the_prose_exists() -> None:
    paths = set(re.findall(r"`([\w./-]+/[\w./-]*|\w+\.(?:py|md|toml|txt|json))`", PAGE))
    assert len(paths) > 20
    missing = sorted(path for path in paths if not any((ROOT / parent / path).exists() for parent in PARENTS))
    assert not missing


def test_every_make_target_of_the_prose_exists() -> None:
    targets = set(re.findall(r"make ([a-z-]+)", PAGE))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets
    assert [target for target in sorted(targets) if not re.search(rf"^{target}:", makefile, re.M)] == []
