"""Fetches the API page's Swagger UI with npm: `python scripts/vendor_swagger.py [VERSION]`.

Copies the files that the page needs. They are committed, so that a server needs neither npm nor the network.
VENDORED.md has the version and the licence.
"""

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

VERSION = "5.35.0"
PACKAGE = "swagger-ui-dist"
FILES = (
    "swagger-ui.css",
    "swagger-ui-bundle.js",
    "swagger-ui-bundle.js.LICENSE.txt",
    "LICENSE",
    "NOTICE",
)
TARGET = Path(__file__).parents[1] / "server/teletape_server/static/vendor/swagger-ui"


def main() -> None:
    """Writes the files of the version on the command line; default: `VERSION`."""
    version = sys.argv[1] if len(sys.argv) > 1 else VERSION
    if shutil.which("npm") is None:
        raise SystemExit("vendor_swagger: npm not found: install Node.js, or keep the committed files")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", f"{PACKAGE}@{version}"], cwd=folder, check=True)
        [archive] = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        source = Path(folder) / "package"
        facts = json.loads((source / "package.json").read_text())
        shutil.rmtree(TARGET, ignore_errors=True)
        TARGET.mkdir(parents=True)
        for name in FILES:
            (TARGET / name).write_bytes(_without_map((source / name).read_bytes()))
    (TARGET / "VENDORED.md").write_text(
        f"{PACKAGE} {facts['version']}, {facts['license']} (LICENSE, NOTICE), as npm has it but for the references to "
        "source maps.\nWritten by scripts/vendor_swagger.py; not edited by hand.\n"
    )


def _without_map(content: bytes) -> bytes:
    """Returns the file without the line that makes a browser's developer tools fetch a source map."""
    return re.sub(rb"\n?(//# sourceMappingURL=\S+|/\*# sourceMappingURL=\S+ ?\*/)\s*$", b"\n", content)


if __name__ == "__main__":
    main()
