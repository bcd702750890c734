"""benchmarks/compare.py: both sides run every row, a loss turns into an exit status, and noise into neither."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    not (ROOT / ".venv" / "bin" / "teletape").exists(), reason="a checkout is compared with the Python of its .venv"
)
_spec = importlib.util.spec_from_file_location("benchmark_compare", ROOT / "benchmarks" / "compare.py")
assert _spec is not None
assert _spec.loader is not None
compare = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(compare)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "benchmarks/compare.py", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.long
def test_a_checkout_is_compared_with_itself() -> None:
    result = run(".", str(ROOT), "--pairs", "2", "--only", "remote empty", "--limit", "1000")
    assert result.returncode == 0, result.stderr
    _, *rows = result.stdout.splitlines()
    labels = ["Teletape (HTTP): empty"]
    assert [row[:34].strip() for row in rows] == labels
    for row in rows:
        assert min(float(cell) for cell in row[34:].split()[:3]) > 0


def test_a_loss_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare.verdict([1.2, 1.1, 1.3, 1.15] * 5, 1.05) == "slower"
    with pytest.raises(SystemExit, match="slower by more than 5%: chain"):
        compare.conclude(["chain"], ["mlp"], 1.05)
    compare.conclude([], ["mlp"], 1.05)
    assert capsys.readouterr().out.count("unclear after 3 attempts: mlp") == 2


def test_noise_is_no_loss() -> None:
    assert compare.verdict([0.8, 1.2] * 10, 1.05) == ""
    assert compare.verdict([1.02] * 20, 1.05) == ""
    assert compare.verdict([0.7, 1.3, 1.2, 0.9, 1.1] * 4, 1.05) == "unclear"
    assert compare.verdict([0.5] * 20, 1.05) == ""


def test_the_interval_is_of_order_statistics() -> None:
    ratios = [float(number) for number in range(20, 0, -1)]
    assert compare.interval(ratios) == (6.0, 15.0)
    assert compare.interval([1.0, 2.0]) == (1.0, 2.0)


def test_a_checkout_that_is_not_installed_is_refused(tmp_path: Path) -> None:
    result = run(str(tmp_path), ".")
    assert result.returncode == 1
    assert "make install" in result.stderr


def test_an_unknown_commit_is_refused() -> None:
    result = run("no-such-commit", ".")
    assert result.returncode == 1
    assert "neither the folder of a checkout nor a commit" in result.stderr
