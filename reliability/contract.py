"""Sends random requests to a server and compares the answers with its OpenAPI document: `make contract`.

All checks of schemathesis, and the document's links; ARGS go to it: `make contract ARGS='--max-examples 200'`. It
installs schemathesis into an environment of its own, `.venv/contract`.
"""

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv" / "contract"
SETTINGS = Path(__file__).with_name("schemathesis.toml")
REQUIREMENT = "schemathesis>=4.32,<5"


def main() -> int:
    """Runs schemathesis against a server of its own; returns its status."""
    python = ENVIRONMENT / "bin" / "python"
    if not (ENVIRONMENT / "bin" / "schemathesis").exists():
        venv.create(ENVIRONMENT, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", REQUIREMENT], check=True)
    command = [
        *(sys.executable, str(ROOT / "scripts/with_server.py"), "sh", "-c"),
        f'exec "{ENVIRONMENT}/bin/schemathesis" --config-file "{SETTINGS}" run "$TELETAPE_URL/openapi.json" "$@"',
        *("schemathesis", "--exclude-operation-id", "sessions-delete", "--no-color", *sys.argv[1:]),
    ]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
