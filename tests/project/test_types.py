"""What type checkers and editors see of teletape: real types, in the examples too, and names that complete."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import teletape as tf

ROOT = Path(__file__).resolve().parents[2]
TYPED = Path(__file__).with_name("typed")
PROGRAMS = [TYPED / "program.py", *sorted((ROOT / "examples").glob("*.py"))]
PACKAGES = os.pathsep.join(str(ROOT / folder) for folder in ("engine", "wire", "client", "server"))


def mypy(*files: Path) -> list[tuple[str, int]]:
    """The errors of mypy in its strict mode: file and line of each. Packages without types are let through.

    It runs with the project's configuration, and so uses the cache of the project's own check: to check all packages
    again took ten times as long as to check the programs.
    """
    command = [sys.executable, "-m", "mypy", "--no-error-summary", *map(str, files)]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode in (0, 1), checked.stderr
    lines = [line for line in checked.stdout.splitlines() if ": error:" in line]
    assert bool(lines) == bool(checked.returncode), checked.stdout
    typed = [line for line in lines if not line.endswith("[import-untyped]")]
    return [(Path(line.split(":")[0]).name, int(line.split(":")[1])) for line in typed]


def pyright(folder: Path, *files: Path) -> list[tuple[str, int, str]]:
    """The messages of pyright in its standard mode, run in a folder without a configuration.

    Returns file, line and severity of each.
    """
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, *map(str, files)]
    checked = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert checked.returncode in (0, 1), checked.stdout + checked.stderr
    report = json.loads(checked.stdout)
    assert report["summary"]["filesAnalyzed"] >= len(files)
    return [
        (Path(entry["file"]).name, entry["range"]["start"]["line"] + 1, entry["severity"])
        for entry in report["generalDiagnostics"]
    ]


def wrong_lines() -> set[int]:
    lines = (TYPED / "wrong.py").read_text(encoding="utf-8").splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}


#: A program with Keras's modules and what is in them; its last line names what is not there.
KERAS = (
    "import teletape as tf\nfrom teletape import keras\nfrom teletape.keras import layers, losses\n"
    "dense: layers.Dense = layers.Dense(3)\n"
    "tf.keras.optimizers.Adam(0.1)\nkeras.losses.MeanSquaredError()\nlosses.nothing()\n"
)


def in_wrong_alone() -> set[tuple[str, int]]:
    return {("wrong.py", line) for line in wrong_lines()}


@pytest.mark.checkers
def test_mypy_passes_over_every_program_and_finds_what_is_wrong() -> None:
    assert set(mypy(*PROGRAMS, TYPED / "wrong.py")) == in_wrong_alone()


@pytest.mark.checkers
def test_pyright_passes_over_every_program_and_finds_what_is_wrong(tmp_path: Path) -> None:
    """In one run, which reads the package once; of a program with Keras it says nothing by a warning either."""
    program = tmp_path / "with_keras.py"
    program.write_text(KERAS)
    messages = pyright(tmp_path, *PROGRAMS, TYPED / "wrong.py", program)
    assert {(name, line) for name, line, severity in messages if severity == "error"} == {
        *in_wrong_alone(),
        (program.name, 7),
    }
    assert not [line for name, line, severity in messages if name == program.name and severity == "warning"]


def test_the_typed_program_runs() -> None:
    command = [sys.executable, "-P", str(TYPED / "program.py")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """jedi's cache of parsed files in a folder of this process: it is not made for two that write at a time."""
    import jedi  # its import takes a while

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jedi.settings, "cache_directory", str(tmp_path_factory.mktemp("jedi")))
        yield


def completions(text: str) -> list[str]:
    """What jedi, which editors and IPython use, completes after `text`."""
    import jedi

    lines = f"import teletape as tf\n{text}"
    project = jedi.Project(ROOT, added_sys_path=PACKAGES.split(os.pathsep))
    script = jedi.Script(lines, path=TYPED / "editor.py", project=project)
    rows = lines.splitlines()
    return [entry.name for entry in script.complete(len(rows), len(rows[-1]))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tf.red", sorted(name for name in dir(tf) if name.startswith("red"))),
        ("tf.math.reduce_s", ["reduce_std", "reduce_sum"]),
        ("tf.linalg.ma", ["matmul", "matrix_rank", "matrix_transpose", "matvec"]),
        ("tf.nn.sof", ["softmax", "softmax_cross_entropy_with_logits", "softplus", "softsign"]),
        ("tf.random.", sorted(tf.random.__all__, key=str.lower)),
        ("tf.compat.v1.wh", ["while_loop"]),
        ("tf.GradientTape().grad", ["gradient", "gradient_statistics", "gradients"]),
        ("tf.constant(1.0).num", ["numpy"]),
        ("tf.keras.layers.Dens", ["Dense"]),
        ("tf.optimizers.Ada", ["Adadelta", "Adafactor", "Adagrad", "Adam", "Adamax", "AdamW"]),
    ],
)
def test_editors_complete_public_names(text: str, expected: list[str]) -> None:
    completed = [name for name in completions(text) if not name.startswith("__")]
    assert completed == expected


@pytest.mark.parametrize("path", ["tf", "tf.math", "tf.data", "tf.errors", "tf.debugging"])
def test_notebooks_complete_public_names_alone(path: str) -> None:
    import jedi

    module: Any = tf
    for part in path.split(".")[1:]:
        module = getattr(module, part)
    completed = [entry.name for entry in jedi.Interpreter(f"{path}.", [{"tf": tf}]).complete()]
    assert sorted(name for name in completed if not name.startswith("__")) == dir(module)


def test_editors_show_signatures_and_documentation() -> None:
    import jedi

    project = jedi.Project(ROOT, added_sys_path=PACKAGES.split(os.pathsep))
    script = jedi.Script("import teletape as tf\ntf.reduce_sum(", path=TYPED / "editor.py", project=project)
    (signature,) = script.get_signatures(2, len("tf.reduce_sum("))
    assert [parameter.name for parameter in signature.params] == ["input_tensor", "axis", "keepdims", "name"]
    assert "sum over `axis`" in signature.docstring()
