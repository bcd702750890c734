"""benchmarks/compare.py: every case of both sides runs, and a limit turns into an exit status."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    not (ROOT / ".venv" / "bin" / "teletape").exists(), reason="a checkout is compared with the Python of its .venv"
)


def compare(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "benchmarks/compare.py", str(ROOT), str(ROOT), "--pairs", "2", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_checkout_is_compared_with_itself() -> None:
    result = compare("--only", "gradient", "--limit", "1000")
    assert result.returncode == 0, result.stderr
    _, *rows = result.stdout.splitlines()
    labels = ["SDK: 64 gradients", "SDK: gradient", "HTTP: 64 gradients", "HTTP: gradient"]
    assert [row[:22].strip() for row in rows] == labels
    for row in rows:
        old, new, ratio = (float(cell) for cell in row[22:].split()[:3])
        assert min(old, new, ratio) > 0


def test_a_ratio_above_the_limit_fails() -> None:
    result = compare("--only", "SDK: gradient", "--limit", "0")
    assert result.returncode == 1
    assert "above 0.0: SDK: gradient" in result.stderr


def test_a_checkout_that_is_not_installed_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "benchmarks/compare.py", str(tmp_path), str(ROOT)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "make install" in result.stderr
