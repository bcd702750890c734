"""The project's own rules: documentation, import names, pinned dependencies, packaging, and what CI runs."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def run(*command: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    tool = [str(BIN / command[0]), *command[1:]]
    return subprocess.run(tool, cwd=ROOT, input=stdin, capture_output=True, text=True)


def test_ci_runs_the_linters_and_the_type_checkers() -> None:
    """Which are no tests, so that `make test` does not wait for them."""
    command = ["make", "--dry-run", "lint"]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    tools = [" ".join(line.split()[:2]).removeprefix(".venv/bin/") for line in lines if line.startswith(".venv/bin/")]
    assert {"ruff check", "ruff format", "lint-imports", "shellcheck .ci/run", "mypy"} <= set(tools)
    assert any("pytest -m checkers" in line for line in lines)
    assert re.search(r"^nice -n \d+ make lint\b", (ROOT / ".ci/run").read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("folder", ["engine", "wire", "client", "server"])
@pytest.mark.parametrize("statement", ["import {}", "import {}.x", "from {} import x", "from {}.x import y"])
def test_folders_are_never_import_names(folder: str, statement: str) -> None:
    source = statement.format(folder) + "\n"
    done = run("ruff", "check", "--select=TID251", "--stdin-filename=tests/project/test_tools.py", "-", stdin=source)
    assert "TID251" in done.stdout, f"ruff lets {source!r} pass:\n{done.stdout}{done.stderr}"


#: Libraries whose adapters are not imported where they are absent.
ADAPTED = {"jax", "pytensor", "torch"}


def modules() -> Iterator[ModuleType]:
    for package in ("teletape_engine", "teletape_wire", "teletape", "teletape_client", "teletape_server"):
        root = importlib.import_module(package)
        yield root
        for walk_package in pkgutil.walk_packages(root.__path__, f"{package}."):
            if not walk_package.name.endswith((".__main__", ".inherited")):  # these change the process
                try:
                    yield importlib.import_module(walk_package.name)
                except ModuleNotFoundError as error:
                    if error.name not in ADAPTED:
                        raise


def test_the_engine_reads_no_environment() -> None:
    """What calls it does: the SDK in a program, the workers of a server."""
    files = sorted((ROOT / "engine").rglob("*.py"))
    readers = re.compile(r"\b(?:environb?|getenvb?|putenv|unsetenv|expandvars|gettempdir|load_dotenv)\b")
    assert len(files) > 200
    assert [path.name for path in files if readers.search(path.read_text(encoding="utf-8"))] == []


def test_public_methods_are_documented() -> None:
    """Here rather than in ruff, for which an override lacks the documentation that it inherits."""
    undocumented = {
        f"{cls.__module__}.{cls.__qualname__}.{name}"
        for module in modules()
        for cls in vars(module).values()
        if inspect.isclass(cls) and cls.__module__ == module.__name__ and not cls.__name__.startswith("_")
        for name, member in vars(cls).items()
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))
        if not inspect.getdoc(getattr(cls, name))
    }
    assert not undocumented, sorted(undocumented)


def test_constraints_hold_exact_versions_alone() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    names = [line.partition("==")[0] for line in lines]
    assert all("==" in line and not set(line) & set("/@;* ") for line in lines), lines
    assert names == sorted(set(names))


def test_constraints_pin_every_dependency() -> None:
    project = PYPROJECT["project"]
    extras = project["optional-dependencies"].values()
    question = {name(line) for line in [*project["dependencies"], *(line for extra in extras for line in extra)]}
    pinned = {name(line) for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    assert question - {"teletape"} <= pinned, f"run `make constraints` for {sorted(question - {'teletape'} - pinned)}"


def name(requirement: str) -> str:
    """The normalised name of the distribution that a requirement asks for."""
    match = re.match(r"[\w.-]+", requirement)
    assert match, requirement
    return re.sub("[-_.]+", "-", match[0]).lower()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of the files in the wheel, built with the build backend in a process of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    build = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    done = run("python", "-c", build, str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("teletape-*.whl")
    with zipfile.ZipFile(path) as archive:
        return set(archive.namelist())


def test_wheel_holds_every_package_file(wheel: set[str]) -> None:
    """Data files too: the pages' assets, the guide, the JavaScript client that pages import, py.typed."""
    folders = {"engine": "", "wire": "", "client/teletape": "teletape/", "server": ""}
    folders |= {f"client/{package}": f"{package}/" for package in ("teletape-stubs", "teletape_client")}
    folders |= {"docs": "teletape_server/docs/", "client/js/src": "teletape_server/static/client/"}
    expected = {
        place + path.relative_to(ROOT / folder).as_posix()
        for folder, place in folders.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    metadata = {name for name in wheel if ".dist-info/" in name}
    assert wheel - metadata == expected
    for package in ("teletape_engine", "teletape_wire", "teletape", "teletape_client", "teletape_server"):
        assert f"{package}/py.typed" in wheel
