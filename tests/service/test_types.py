"""What type checkers see of the client: no fault in it or in a program, and the mistakes of a program."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("typed_program.py")


def wrong_lines() -> set[tuple[str, int]]:
    lines = PROGRAM.read_text(encoding="utf-8").splitlines()
    return {(PROGRAM.name, number) for number, line in enumerate(lines, 1) if line.endswith("# wrong")}


@pytest.mark.checkers
def test_mypy_finds_what_is_wrong_in_a_program_and_no_more() -> None:
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(PROGRAM)]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [line.split(":") for line in checked.stdout.splitlines() if ": error:" in line]
    assert {(Path(name).name, int(number)) for name, number, *_ in lines} == wrong_lines(), checked.stdout


@pytest.mark.checkers
def test_pyright_in_its_strict_mode_finds_nothing_else_in_a_program_nor_in_the_client(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "client/teletape_client", tmp_path / "teletape_client")
    shutil.copy(PROGRAM, tmp_path)
    settings = {"typeCheckingMode": "strict", "include": [PROGRAM.name, "teletape_client"]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    report = json.loads(checked.stdout)
    assert report["summary"]["filesAnalyzed"] > 20
    faults = [entry for entry in report["generalDiagnostics"] if entry["severity"] == "error"]
    places = {(Path(entry["file"]).name, entry["range"]["start"]["line"] + 1) for entry in faults}
    assert places == wrong_lines(), faults
