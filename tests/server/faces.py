"""Clients of other projects, and generators of clients: where they are installed, and programs that run with them."""

from pathlib import Path

from programs import run

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv/clients/bin/python"
CLIENTS = Path(__file__).with_name("clients")
NODE = CLIENTS / "node_modules/.bin"


def run_client(program: str | Path, url: str, **environment: str) -> str:
    """What a program prints in the environment of the clients; a text is the program itself."""
    command = [str(PYTHON), str(program)] if isinstance(program, Path) else [str(PYTHON), "-c", program]
    return run(command, patience=110, TELETAPE_URL=url, JAX_PLATFORMS="cpu", **environment)
