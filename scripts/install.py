"""Installs the project with some of its extras, or a file of requirements into another virtual environment.

    .venv/bin/python scripts/install.py demo,server
    .venv/bin/python scripts/install.py --into .venv/clients tests/server/clients/requirements.txt

uv installs, which takes a fraction of pip's time; pip does where uv cannot be had or fails. Both install the project
with the versions of constraints.txt, and from the indexes that pip is set to use: uv does not read pip's settings by
itself. The other environment needs no pip of its own.
"""

import argparse
import ast
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PIP = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check"]
UV = Path(sys.executable).with_name("uv")
#: A setting of pip's, the variable from which uv reads the same, and the separator of its values.
SETTINGS = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "constraint": ("UV_CONSTRAINT", " "),
    "cert": ("SSL_CERT_FILE", " "),
}


def for_uv(listing: str) -> dict[str, str]:
    """uv's variables for the settings that `pip config list` prints; later lines, of variables, replace files."""
    variables: dict[str, str] = {}
    for line in listing.splitlines():
        key, _, text = line.partition("=")
        setting = key.rpartition(".")[2]
        if setting in SETTINGS:
            name, separator = SETTINGS[setting]
            variables[name] = separator.join(str(ast.literal_eval(text)).split())
    if "UV_INDEX" in variables:
        variables["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # pip's: the best version of all indexes
    return variables


def project(extras: str) -> list[str]:
    """The arguments of both installers for the project with some of its extras."""
    return ["--constraint", str(ROOT / "constraints.txt"), "--editable", f"{ROOT}[{extras}]"]


def install(what: Sequence[str], environment: Mapping[str, str], python: str = sys.executable) -> int:
    """Installs into the virtual environment of this Python, with uv or else with pip; returns the exit status."""
    with_uv = [str(UV), "pip", "install", "--quiet", "--python", python, *what]
    with_pip = [*PIP, "--python", python, "install", "--quiet", *what]
    pins = ["--constraint", str(ROOT / "constraints.txt")]
    got = subprocess.run([*PIP, "install", "--quiet", *pins, "uv"], env=environment, capture_output=True, text=True)
    if got.returncode == 0:
        listing = subprocess.run([*PIP, "config", "list"], env=environment, capture_output=True, text=True).stdout
        if subprocess.call(with_uv, cwd=ROOT, env={**for_uv(listing), **environment}) == 0:
            return 0
    print("install: uv did not install; pip does", file=sys.stderr)
    return subprocess.call(with_pip, cwd=ROOT, env=environment)


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", metavar="EXTRAS|FILE")
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="a virtual environment that gets FILE's packages")
    options = parser.parse_args()
    if options.into is None:
        return install(project(options.what), os.environ)
    return install(["--requirement", options.what], os.environ, str(options.into / "bin" / "python"))


if __name__ == "__main__":
    sys.exit(main())
