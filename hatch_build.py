"""Builds the C library of plans into the package, if there is a compiler; without it plans run in Python.

Hatch calls it for wheels and for editable installs. `python hatch_build.py` builds the library in place.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("engine/teletape_engine/plans")
SOURCE, LIBRARY = FOLDER / "rows.c", FOLDER / "librows.so.1"


def build(root: Path) -> str | None:
    """Compiles the library; returns why there is none, or None."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if sys.platform == "win32" or compiler is None:
        return "no C compiler"
    target = root / LIBRARY
    temporary = target.with_suffix(f".{os.getpid()}")
    command = [*compiler.split(), "-O3", "-shared", "-fPIC", "-o", str(temporary), str(root / SOURCE)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.SubprocessError) as error:
        temporary.unlink(missing_ok=True)
        return str(error)
    temporary.replace(target)  # a process that has the old one loaded keeps it
    return None


class BuildHook(BuildHookInterface):  # type: ignore[type-arg]  # the configuration is not used
    """Adds the library to what is built."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds it before the wheel."""
        problem = build(Path(self.root))
        if problem is not None:
            self.app.display_warning(f"plans will run in Python alone: {problem}")
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
        build_data["artifacts"].append(str(LIBRARY))


if __name__ == "__main__":
    sys.exit(build(Path(__file__).parent))
