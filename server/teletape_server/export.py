"""Writes the OpenAPI document: `python -m teletape_server.export [FILE]` (make openapi)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from teletape_server.app import create_app
from teletape_server.settings import Settings

_FILE = Path("openapi/openapi.json")


def text() -> str:
    """The document as it is committed: without the version, which changes nothing that a client sees."""
    found = create_app(Settings()).openapi()
    found["info"]["version"] = "1"
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Writes the file that the command line names; openapi/openapi.json without one."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else _FILE
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text(), encoding="utf-8")
    print(f"export: {target}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
