"""Builds the C libraries of plans and of kernels into the package, if there is a compiler; else Python does it all.

Hatch calls it for wheels and for editable installs. `python hatch_build.py` builds the libraries in place.
"""

import ctypes
import os
import shutil
import subprocess
import sys
import sysconfig
import zlib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = Path("engine/teletape_engine")
#: Each source, and the library that it becomes.
LIBRARIES = {
    PACKAGE / "plans" / "run" / "c" / "rows.c": PACKAGE / "plans" / "run" / "c" / "librows.so.1",
    PACKAGE / "arrays" / "kernels.c": PACKAGE / "arrays" / "libkernels.so.1",
}


def build(root: Path) -> str | None:
    """Compiles the libraries; returns why there are none, or None."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if sys.platform == "win32" or compiler is None:
        return "no C compiler"
    for source, library in LIBRARIES.items():
        target = root / library
        temporary = target.with_suffix(f".{os.getpid()}")
        sources = zlib.crc32(b"".join(path.read_bytes() for path in sorted((root / source).parent.glob("*.[ch]"))))
        if is_built(target, sources):
            continue
        flags = ["-O3", "-ffp-contract=fast", "-shared", "-fPIC", "-pthread", f"-DSOURCES={sources}u"]
        try:
            command = [*compiler.split(), *flags, "-o", str(temporary), str(root / source), "-lm"]
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
        except (OSError, subprocess.SubprocessError) as error:
            temporary.unlink(missing_ok=True)
            return str(error)
        temporary.replace(target)  # a process that has the old one loaded keeps it
    return None


def is_built(library: Path, sources: int) -> bool:
    """Whether a library is of these sources, and was compiled since this file changed; not if CC names a compiler.

    It then stays, because to compile it again takes fifteen seconds.
    """
    if "CC" in os.environ or not library.exists() or library.stat().st_mtime < Path(__file__).stat().st_mtime:
        return False
    try:
        number = ctypes.CDLL(str(library)).teletape_sources
    except (OSError, AttributeError):  # of another machine, or of another version
        return False
    number.restype = ctypes.c_ssize_t
    return bool(number() == sources)


class BuildHook(BuildHookInterface):  # type: ignore[type-arg]  # the configuration is not used
    """Adds the libraries to what is built."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds them before the wheel."""
        problem = build(Path(self.root))
        if problem is not None:
            self.app.display_warning(f"plans and kernels will run in Python alone: {problem}")
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
        build_data["artifacts"] += map(str, LIBRARIES.values())


if __name__ == "__main__":
    sys.exit(build(Path(__file__).parent))
