"""Installs the project with some of its extras: `.venv/bin/python scripts/install.py demo,server`.

uv installs, which takes a fraction of pip's time; pip does where uv cannot be had or fails. Both install the versions
of constraints.txt, and from the indexes that pip is set to use: uv does not read pip's settings by itself.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Mapping
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


def commands(extras: str) -> list[list[str]]:
    """The ways to install, the first choice first; each is a sequence of commands, joined by `&&`."""
    what = ["--constraint", str(ROOT / "constraints.txt"), "--editable", f"{ROOT}[{extras}]"]
    return [
        [str(UV), "pip", "install", "--quiet", "--python", sys.executable, *what],
        [*PIP, "install", "--quiet", *what],
    ]


def install(extras: str, environment: Mapping[str, str]) -> int:
    """Installs with uv, or else with pip; returns the exit status."""
    with_uv, with_pip = commands(extras)
    pins = ["--constraint", str(ROOT / "constraints.txt")]
    got = subprocess.run([*PIP, "install", "--quiet", *pins, "uv"], env=environment, capture_output=True, text=True)
    if got.returncode == 0:
        listing = subprocess.run([*PIP, "config", "list"], env=environment, capture_output=True, text=True).stdout
        if subprocess.call(with_uv, cwd=ROOT, env={**for_uv(listing), **environment}) == 0:
            return 0
    print("install: uv did not install; pip does", file=sys.stderr)
    return subprocess.call(with_pip, cwd=ROOT, env=environment)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    sys.exit(install(sys.argv[1], os.environ))
