"""Writes openapi/openapi.json (make openapi).

Refuses a change that would break clients of the committed document, unless --breaking is given.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from teletape_server.app import create_app
from teletape_server.http.openapi.compatibility import Document, breaking_changes
from teletape_server.settings import Settings

FILE = Path(__file__).resolve().parents[1] / "openapi/openapi.json"


def document() -> Document:
    """Returns the document to commit: without the distribution's version, so that a release changes no file."""
    document: Document = json.loads(json.dumps(create_app(Settings()).openapi()))
    document["info"]["version"] = "1"
    return document


def text() -> str:
    """Returns the content of the committed file."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    """Writes the file; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--breaking", action="store_true", help="write the file even if it breaks clients")
    parser.add_argument("--file", type=Path, default=FILE, help="file to write (default openapi/openapi.json)")
    arguments = parser.parse_args()
    file: Path = arguments.file
    changes = breaking_changes(json.loads(file.read_text()), document()) if file.exists() else []
    if changes and not arguments.breaking:
        print("\n".join(changes), file=sys.stderr)
        print(f"{file} was not written: these changes break clients. Use --breaking to allow it", file=sys.stderr)
        return 1
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text(), encoding="utf-8")
    print(f"wrote {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
