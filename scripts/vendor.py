"""Fetches the libraries of the pages with npm, and writes them to server/teletape_server/static/vendor.

`python scripts/vendor.py [FOLDER ...]` writes all folders, or those named. scripts/vendor/package.json has the
versions and package-lock.json the digests. Swagger UI is copied; each module of scripts/vendor/ becomes one file by
esbuild, with the parts of its libraries that it exports. The results are committed, so that a server needs neither npm
nor the network. LICENSE and VENDORED.md in each folder say what is in it.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parent / "vendor"
TARGET = Path(__file__).parents[1] / "server/teletape_server/static/vendor"
BUNDLES = ("codemirror", "d3", "dagre")
SWAGGER = "swagger-ui-dist"
SWAGGER_FILES = ("swagger-ui.css", "swagger-ui-bundle.js", "swagger-ui-bundle.js.LICENSE.txt", "LICENSE", "NOTICE")


def main() -> None:
    """Writes the folders on the command line; default: all."""
    if shutil.which("npm") is None:
        raise SystemExit("vendor: npm not found: install Node.js, or keep the committed files")
    folders = sys.argv[1:] or ["swagger-ui", *BUNDLES]
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        for file in SOURCES.iterdir():
            shutil.copy(file, root)
        subprocess.run(["npm", "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=root, check=True)
        for folder in folders:
            shutil.rmtree(TARGET / folder, ignore_errors=True)
            (TARGET / folder).mkdir(parents=True)
            if folder == "swagger-ui":
                _copy_swagger(root / "node_modules" / SWAGGER, TARGET / folder)
            else:
                _bundle(root, folder, TARGET / folder)


def _copy_swagger(package: Path, target: Path) -> None:
    for name in SWAGGER_FILES:
        (target / name).write_bytes(_without_map((package / name).read_bytes()))
    about = f"{_about(package)} (LICENSE, NOTICE), as npm has it but for the references to source maps."
    _write_about(target, about)


def _bundle(root: Path, name: str, target: Path) -> None:
    """Writes one module with all that it needs, the licences of its packages, and their versions."""
    meta = root / f"{name}.meta.json"
    command = ["node", "node_modules/esbuild/bin/esbuild", f"{name}.js", "--bundle", "--minify", "--format=esm"]
    command += ["--target=es2022", "--legal-comments=none", "--log-level=warning", f"--metafile={meta.name}"]
    subprocess.run([*command, f"--outfile=out/{name}.js"], cwd=root, check=True)
    shutil.copy(root / "out" / f"{name}.js", target)
    inputs = json.loads(meta.read_text())["inputs"]
    packages = sorted({match[1] for path in inputs if (match := re.match(r"node_modules/((?:@[^/]+/)?[^/]+)/", path))})
    folders = [root / "node_modules" / package for package in packages]
    texts = [f"{_about(folder)}\n\n{_licence(folder)}" for folder in folders]
    (target / "LICENSE").write_text(("\n\n" + "-" * 80 + "\n\n").join(texts) + "\n")
    listed = "\n".join(f"* {_about(folder)}" for folder in folders)
    _write_about(target, f"Bundled by esbuild from scripts/vendor/{name}.js:\n\n{listed}\n")


def _about(package: Path) -> str:
    facts: dict[str, Any] = json.loads((package / "package.json").read_text())
    return f"{facts['name']} {facts['version']}, {facts['license']}"


def _licence(package: Path) -> str:
    [file] = [file for file in package.iterdir() if re.fullmatch(r"licen[cs]e(\.(md|txt))?", file.name, re.I)]
    return file.read_text().strip()


def _write_about(target: Path, about: str) -> None:
    (target / "VENDORED.md").write_text(f"{about}\nWritten by scripts/vendor.py; not edited by hand.\n")


def _without_map(content: bytes) -> bytes:
    """Returns the file without the line that makes a browser's developer tools fetch a source map."""
    return re.sub(rb"\n?(//# sourceMappingURL=\S+|/\*# sourceMappingURL=\S+ ?\*/)\s*$", b"\n", content)


if __name__ == "__main__":
    main()
