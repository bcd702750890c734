"""What the tests of faces share: programs of the protocols' own clients, which are installed with the generators."""

from pathlib import Path

from programs import run

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv/clients/bin/python"


def run_client(program: str | Path, url: str, **environment: str) -> str:
    """What a program prints in the environment of the clients; a text is the program itself."""
    command = [str(PYTHON), str(program)] if isinstance(program, Path) else [str(PYTHON), "-c", program]
    return run(command, patience=110, TELETAPE_URL=url, JAX_PLATFORMS="cpu", **environment)
