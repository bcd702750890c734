"""Where code lies: sizes of folders and files, no import cycles, and a page that names every folder."""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "engine/teletape_engine",
    "wire/teletape_wire",
    "client/teletape",
    "client/teletape_client",
    "server/teletape_server",
)
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
#: A public module of another library.
PUBLIC = {ROOT / "client/teletape/keras"}
FOLDERS = sorted({path.parent for path in FILES})

#: One file for each family of ops, each resource, each page: there may be few.
FAMILIES = {"ops", "_generated", "routes", "handlers", "models", "pages"}


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def modules(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*.py") if path.name not in ("__init__.py", "__main__.py")]


@pytest.mark.parametrize("folder", FOLDERS, ids=name)
def test_a_folder_has_three_to_twelve_modules(folder: Path) -> None:
    count = len(modules(folder))
    assert count <= 12, f"{name(folder)} has {count} modules: make folders of them"
    is_family = FAMILIES & set(folder.relative_to(ROOT).parts) or folder in PUBLIC
    parts = count + len(list(folder.glob("*/__init__.py")))
    assert parts >= 3 or is_family, f"{name(folder)} has {parts} modules and folders"


def test_the_root_of_the_sdk_shows_its_ranks() -> None:
    entries = {path.name for path in (ROOT / "client/teletape").iterdir() if path.name != "__pycache__"}
    assert {"core", "tf", "extras", "keras", "_generated"} < entries
    assert len(entries) <= 14


def test_files_are_short() -> None:
    sizes = [lines(path) for path in FILES if path.name != "__init__.py"]
    assert statistics.median(sizes) < 160


def says_why(path: Path) -> bool:
    documentation = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return "long because" in " ".join(documentation.lower().split())


def test_a_file_of_more_than_400_lines_says_why_and_the_server_has_none() -> None:
    long = [path for path in FILES if lines(path) > 400]
    unexplained = [name(path) for path in long if not says_why(path) or path.is_relative_to(ROOT / "server")]
    assert not unexplained, "split it, or outside the server say in its docstring 'Long because …'"


def test_no_module_imports_itself_through_others() -> None:
    graph = grimp.build_graph(*(Path(package).name for package in PACKAGES))
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    while leaves := [module for module, others in imports.items() if not others & imports.keys() - {module}]:
        for module in leaves:
            del imports[module]
    while tops := imports.keys() - {other for others in imports.values() for other in others}:
        for module in tops:
            del imports[module]
    assert not imports, f"in a cycle, or between two: {sorted(imports)}"


def test_an_import_inside_a_function_hides_no_cycle() -> None:
    """The graph above has those imports too: this holds that it does, and so that none of them closes a cycle."""
    graph = grimp.build_graph("teletape_engine")
    assert graph.direct_import_exists(importer="teletape_engine.arrays", imported="teletape_engine.arrays.gpu")


def test_the_design_page_names_every_folder() -> None:
    result = subprocess.run(
        [sys.executable, "scripts/layout.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("package", ["server", "engine"])
def test_tests_lie_in_folders(package: str) -> None:
    """In folders of at most 14 modules; what several of them share lies in the package's own folder."""
    tests = ROOT / "tests" / package
    assert [path.name for path in tests.glob("test_*.py")] == []
    sizes = {folder.name: len([*folder.glob("test_*.py")]) for folder in tests.iterdir() if folder.is_dir()}
    assert {name: size for name, size in sizes.items() if size > 14} == {}


@pytest.mark.parametrize("package", ["server", "engine"])
def test_no_test_module_imports_another(package: str) -> None:
    importing = [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "tests" / package).rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for imported in [node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name]
        if imported.startswith("test_")
    ]
    assert importing == []
