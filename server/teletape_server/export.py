"""Writes openapi/openapi.json: `python -m teletape_server.export` (make openapi).

Refuses what would break clients of the document that is there, unless told that this is meant (--breaking).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from teletape_server.app import create_app
from teletape_server.http.compatibility import Document, breaks
from teletape_server.settings import Settings

FILE = Path(__file__).parents[2] / "openapi/openapi.json"


def document() -> Document:
    """The document as it is committed: without the distribution's version, which no client builds on."""
    found = create_app(Settings()).openapi()
    found["info"]["version"] = "1"
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]  # an object


def text() -> str:
    """The document as the file has it."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    """Writes the file; returns the exit status."""
    parser = argparse.ArgumentParser("python -m teletape_server.export", description=__doc__)
    parser.add_argument("--breaking", action="store_true", help="write it even if clients break")
    parser.add_argument("--file", type=Path, default=FILE, help="where to (default openapi/openapi.json)")
    given = parser.parse_args()
    found = breaks(json.loads(given.file.read_text()), document()) if given.file.exists() else []
    if found and not given.breaking:
        print("\n".join(found), file=sys.stderr)
        print(
            f"export: {given.file} is as it was: this would break clients. If it is meant: --breaking", file=sys.stderr
        )
        return 1
    given.file.parent.mkdir(parents=True, exist_ok=True)
    given.file.write_text(text(), encoding="utf-8")
    print(f"export: wrote {given.file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
