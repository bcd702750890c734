"""Programs in processes of their own, the scripts of scripts/ as modules, and JSON in printed text."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def run(command: list[str], *, text: str | None = None, patience: float = 60, **environment: str) -> str:
    """What a program prints, without the caller's TELETAPE_* settings.

    Args:
        command: The program and its arguments; it runs in the repository's root.
        text: Its standard input.
        patience: Seconds after which it is ended.
        environment: Variables in addition to those of this process.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TELETAPE_")}
    done = subprocess.run(
        command,
        input=text,
        env=clean | {"no_proxy": "127.0.0.1"} | environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=patience,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def chromium_path() -> str | None:
    """The path of Debian's Chromium, preferably of the one that opens no windows; None: neither is installed."""
    return shutil.which("chromium-headless-shell") or shutil.which("chromium")


def json_objects(text: str) -> list[dict[str, Any]]:
    """The JSON objects in a text, in order."""
    decoder, position, values = json.JSONDecoder(), 0, []
    while (start := text.find("{", position)) >= 0:
        value, position = decoder.raw_decode(text, start)
        values.append(value)
    return values


def load_script(name: str) -> ModuleType:
    """A module of scripts/, which is no package."""
    spec = importlib.util.spec_from_file_location(f"scripts_{name}", ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up the module of a class
    spec.loader.exec_module(module)
    return module
