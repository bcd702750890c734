"""The examples in other languages: each is run if the machine has the language; all are compared with the document."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from programs import run
from teletape_engine.catalogue.op import CATALOGUE

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "examples/clients"
PROGRAMS = sorted(path.name for path in FOLDER.glob("gradient.*"))
#: Where Debian's packages of crates lie.
CRATES = Path("/usr/share/cargo/registry")


def command(name: str, folder: Path) -> list[str] | str:
    """Returns the command that runs an example, or why it cannot be run here."""
    path = str(FOLDER / name)
    match name.rpartition(".")[2]:
        case "go":
            return [shutil.which("go") or "go", "run", path] if shutil.which("go") else "Go is not installed"
        case "R":
            packages = "for (name in c('httr2', 'jsonlite')) stopifnot(requireNamespace(name, quietly = TRUE))"
            if shutil.which("Rscript") is None:
                return "R is not installed"
            if subprocess.run(["Rscript", "-e", packages], capture_output=True, check=False).returncode:
                return "R has no httr2"
            return ["Rscript", path]
        case "rs":
            if not Path("/usr/bin/cargo").exists() or not list(CRATES.glob("ureq-2*")):
                return "Debian's cargo and its crates (librust-ureq-dev, librust-serde-json-dev) are not installed"
            shutil.copy(FOLDER / "gradient.rs", folder)
            # Half of what is compiled is TLS, which a server on loopback does not need.
            manifest = (FOLDER / "Cargo.toml").read_text(encoding="utf-8")
            without_tls = manifest.replace('features = ["json"]', 'default-features = false, features = ["json"]')
            (folder / "Cargo.toml").write_text(without_tls + "\n[profile.dev]\ndebug = false\n", encoding="utf-8")
            (folder / ".cargo").mkdir()
            source = f'[source.crates-io]\nreplace-with = "debian"\n[source.debian]\ndirectory = "{CRATES}"\n'
            (folder / ".cargo/config.toml").write_text(source)
            return ["sh", "-c", f"cd {folder} && CARGO_PROFILE_DEV_DEBUG=0 /usr/bin/cargo run --offline --quiet"]
        case _:
            if shutil.which("julia") is None:
                return "Julia is not installed, and Debian 12 has no package of it"
            return ["julia", path]


@pytest.mark.long
@pytest.mark.timeout(300)  # a compiler may have to build libraries first
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_trains_and_explains_a_null(name: str, server_url: str, tmp_path: Path) -> None:
    program = command(name, tmp_path)
    if isinstance(program, str):
        pytest.skip(program)
    system_first = {"PATH": f"/usr/bin:{os.environ['PATH']}"}  # cargo's own compiler, if there are several
    printed = run(program, patience=240, TELETAPE_URL=server_url, HOME=str(tmp_path), **system_first)
    assert printed.splitlines() == [
        "loss after 50 steps: 0.017",
        "the gradient of round is null: non_differentiable_op (round)",
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_its_requests_are_in_the_document(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    document = json.loads((ROOT / "openapi/openapi.json").read_text(encoding="utf-8"))
    questions = re.findall(r"/functions/(?:loss|steps)/(\w+)", text)
    assert questions == ["value_and_gradient", "gradient"]
    for question in questions:
        assert f"/v1/sessions/{{session}}/functions/{{function}}/{question}" in document["paths"]
    ops = re.findall(r'"?op"?\s*[:=]\s*"(\w+)"', text)
    assert ops == ["matmul", "sigmoid_cross_entropy", "reduce_mean", "round"]
    assert all(CATALOGUE.named(op) for op in ops)
    members = document["components"]["schemas"]["FunctionGradientQuestion"]["properties"]
    assert {"inputs", "sources"} <= set(members)
