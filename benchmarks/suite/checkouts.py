"""A commit as a checkout that can be measured: a worktree with an environment that borrows this one's packages."""

import contextlib
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

from suite.servers import ROOT

SOURCES = ("engine", "wire", "client", "server")
#: Processes of sessions import it again: only the first one may serve.
COMMAND = """\
#!{python}
import sys

from teletape_server.cli import main

if __name__ == "__main__":
    sys.exit(main())
"""


@contextlib.contextmanager
def checkout(name: str) -> Iterator[Path]:
    """Yields the Python of a checkout or of a commit; a commit's worktree is removed after the block.

    Args:
        name: The root of an installed checkout, or any name of a commit.

    Raises:
        SystemExit: It is neither; or it is not installed.
    """
    if Path(name).is_dir():
        yield _installed(Path(name).resolve())
        return
    commit = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    if not commit:
        raise SystemExit(f"{name!r} is neither the folder of a checkout nor a commit")
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        root = Path(folder) / commit[:12]
        _git("worktree", "add", "--quiet", "--detach", str(root), commit)
        try:
            yield _installed(_install(root))
        finally:
            _git("worktree", "remove", "--force", str(root))


def _install(root: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root / ".venv"], check=True)
    paths = sysconfig.get_paths(vars={"base": str(root / ".venv"), "platbase": str(root / ".venv")})
    lines = [*[str(root / source) for source in SOURCES], *[path for path in sys.path if path.endswith("-packages")]]
    (Path(paths["purelib"]) / "checkout.pth").write_text("\n".join(lines) + "\n")
    command = root / ".venv" / "bin" / "teletape"
    command.write_text(COMMAND.format(python=command.with_name("python")))
    command.chmod(0o755)
    if (root / "hatch_build.py").exists():  # an older commit has no C library
        subprocess.run([command.with_name("python"), "hatch_build.py"], cwd=root, check=False)
    return root


def _installed(root: Path) -> Path:
    python = root / ".venv" / "bin" / "python"
    if not python.exists():
        raise SystemExit(f"no {python}: run `make install` in {root}")
    program = "import teletape, teletape_engine; print(teletape.__file__, teletape_engine.__file__)"
    result = subprocess.run([python, "-P", "-c", program], cwd=root, capture_output=True, text=True, check=False)
    if not all(path.startswith(f"{root}/") for path in result.stdout.split()) or result.returncode:
        raise SystemExit(f"{python} does not import Teletape from {root}: run `make install` there\n{result.stderr}")
    return python


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=ROOT, check=True)
