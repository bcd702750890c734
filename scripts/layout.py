"""Writes the layout of the packages into docs/design.md; with --check it reports whether the page is current.

A folder's sentence is the first of the docstring of its `__init__`, a module's the first of its own. The order is that
of the import contracts in pyproject.toml: each layer imports only from those below it.
"""

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "design.md"
BEGIN = "<!-- Written by `make layout` from the docstrings; a test holds it current. -->\n"
END = "<!-- The end of what `make layout` writes. -->\n"
PACKAGES = {
    "teletape_engine": ROOT / "engine" / "teletape_engine",
    "teletape_wire": ROOT / "wire" / "teletape_wire",
    "teletape": ROOT / "client" / "teletape",
    "teletape_client": ROOT / "client" / "teletape_client",
    "teletape_server": ROOT / "server" / "teletape_server",
}


def sentence(path: Path) -> str:
    """The first sentence of the docstring of a module, or of a folder's `__init__`.

    Raises:
        ValueError: There is none.
    """
    file = path / "__init__.py" if path.is_dir() else path
    documentation = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    if not documentation:
        raise ValueError(f"{file.relative_to(ROOT)} has no docstring")
    paragraph = " ".join(documentation.partition("\n\n")[0].split())
    return re.split(r"(?<=[.:!?])\s(?=[A-Z`])", paragraph)[0].rstrip(".:") + "."


def layers(package: str) -> list[list[str]]:
    """The layers of a package, the highest first: the names in each are folders and modules at its top."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    for contract in contracts:
        if contract.get("containers") == [package]:
            return [[name.strip(" ()") for name in layer.split("|")] for layer in contract["layers"]]
    raise ValueError(f"pyproject.toml has no layers contract for {package}")


def folders(path: Path) -> list[Path]:
    """The import folders directly inside a folder."""
    return sorted(inner.parent for inner in path.glob("*/__init__.py"))


def rows(package: str, root: Path) -> list[str]:
    """The table of a package: its layers from the highest to the lowest, subfolders after their folder."""
    lines = []
    for layer in layers(package):
        for name in layer:
            folder, module = root / name, root / f"{name}.py"
            if folder.is_dir():
                lines.append(f"| `{name}/` | {sentence(folder)} |")
                lines += [f"| `{name}/{inner.name}/` | {sentence(inner)} |" for inner in folders(folder)]
            elif module.exists():
                lines.append(f"| `{name}.py` | {sentence(module)} |")
    return lines


def section() -> str:
    """The tables between the two marks of the page."""
    parts = []
    for package, root in PACKAGES.items():
        parts.append(f"**{root.relative_to(ROOT)}**: {sentence(root)}\n\n")
        parts.append("| folder or module, highest layer first | what it holds |\n| --- | --- |\n")
        parts.append("\n".join(rows(package, root)) + "\n\n")
    return "".join(parts)


def page(text: str) -> str:
    """The page with its section written anew."""
    before, _, rest = text.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError("docs/design.md lacks the two marks between which the layout is written")
    return f"{before}{BEGIN}\n{section()}{END}{after}"


if __name__ == "__main__":
    current = PAGE.read_text(encoding="utf-8")
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if current == page(current) else "docs/design.md: the layout is not current: make layout")
    PAGE.write_text(page(current), encoding="utf-8")
