"""Writes constraints.txt: the exact versions that pip resolves for every extra and for `make adapters`, no addresses.

Run by `make constraints` with the oldest supported Python, since a version that installs there installs on the newer
ones too. Nothing is installed: pip only resolves.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: What `make adapters` tests with besides the extras.
ADAPTERS = ("pymc", "tesseract-torch")
HEADER = """\
# Versions that the project is tested with: pip install -e '.[dev]' -c constraints.txt
# Regenerate with `make constraints`, on Python {python}, the oldest that is supported. Only names and versions: no
# addresses, no hashes.
"""


def main() -> None:
    """Resolves the project with every extra and writes the file."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    command += ["--report", "-", f"{ROOT}[dev,browser,gpu,torch,jax,pytensor]", *ADAPTERS]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    versions = {_normalised(item["metadata"]["name"]): item["metadata"]["version"] for item in report["install"]}
    lines = [f"{name}=={version}" for name, version in sorted(versions.items()) if name != "teletape"]
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    (ROOT / "constraints.txt").write_text(HEADER.format(python=python) + "\n".join(lines) + "\n")


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main()
