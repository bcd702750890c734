"""Runs Keras's own tests on Teletape and compares with what TensorFlow passes: `make keras-tests`.

    make keras-tests                                  the families that must pass, with the installed Keras
    make keras-tests ARGS='--family rnn --http'       one family, through a server on loopback
    make keras-tests ARGS='--keras 3.14.1'            another version, installed for this run into .venv/keras
    make keras-tests ARGS='--all'                     every family
    make keras-tests ARGS='--matrix'                  three versions, each in this process and through a server

It fails if, of the families that must pass, a test fails or is skipped that TensorFlow passes and that
expected_failures.toml does not name; if a test passes that it names; or if fewer than 97 % of what TensorFlow passes
do. The other families are counted. TensorFlow's outcomes are recorded; its own Python, in an
environment without Teletape, records them again with the same file:

    ~/tensorflow/bin/pip install tensorflow-cpu==2.21.* keras==3.15.1 pytest pytest-xdist pytest-timeout
    ~/tensorflow/bin/python tests/keras_suite/run.py --record
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from keras_suite.outcomes import ExpectedFailures, Outcomes, not_passed_on_tensorflow, record
from keras_suite.plugin import OUTCOMES

ROOT = Path(__file__).resolve().parents[2]
#: The families that must pass, and where Keras keeps their tests.
MUST_PASS = {
    "activations": "src/activations",
    "attention": "src/layers/attention",
    "core": "src/layers/core",
    "losses": "src/losses",
    "merging": "src/layers/merging",
    "metrics": "src/metrics",
    "models": "src/models",
    "normalization": "src/layers/normalization",
    "optimizers": "src/optimizers",
    "rnn": "src/layers/rnn",
    "saving": "src/saving",
}
OTHERS = {
    "applications": "src/applications",
    "backend": "src/backend",
    "callbacks": "src/callbacks",
    "constraints": "src/constraints",
    "convolutional": "src/layers/convolutional",
    "datasets": "src/datasets",
    "distillation": "src/distillation",
    "dtype_policies": "src/dtype_policies",
    "initializers": "src/initializers",
    "layer": "src/layers/layer_test.py",
    "layer_activations": "src/layers/activations",
    "legacy": "src/legacy",
    "ops": "src/ops",
    "pooling": "src/layers/pooling",
    "preprocessing": "src/layers/preprocessing",
    "quantizers": "src/quantizers",
    "random": "src/random",
    "regularization": "src/layers/regularization",
    "regularizers": "src/regularizers",
    "reshaping": "src/layers/reshaping",
    "trainers": "src/trainers",
    "tree": "src/tree",
    "utils": "src/utils",
    "wrappers": "src/wrappers",
}
FAMILIES = MUST_PASS | OTHERS
SHARE = 0.97
#: The versions of `--matrix`, in addition to the installed one.
VERSIONS = ("3.14.1", "3.15.0")
FAILED = ("failed", "error")
MAXIMUM_LISTED = 60


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", action="append", choices=sorted(FAMILIES), help="run these alone")
    parser.add_argument("--all", action="store_true", help="run every family")
    parser.add_argument("--http", action="store_true", help="through a server of its own on loopback")
    parser.add_argument("--keras", metavar="VERSION", help="this version of Keras, installed for the run")
    parser.add_argument("--matrix", action="store_true", help="several versions, in this process and through a server")
    parser.add_argument("--record", action="store_true", help="record TensorFlow's outcomes (with TensorFlow's Python)")
    parser.add_argument("--json", metavar="FILE", help="write the outcomes of all tests here")
    parser.add_argument("--workers", default="auto", help="processes of pytest-xdist")
    parser.add_argument("-k", metavar="EXPRESSION", help="pytest's own: the tests whose names fit")
    return parser.parse_args()


def location() -> Path:
    """Where the installed Keras is."""
    spec = importlib.util.find_spec("keras")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("keras-tests: Keras is not installed: pip install 'teletape[keras]'")
    return Path(spec.submodule_search_locations[0])


def installed(version: str) -> Path:
    """A folder that holds this version of Keras alone; if its wheel has no tests, with those of the installed one."""
    folder = ROOT / ".venv" / "keras" / version
    if not (folder / "keras").exists():
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
        subprocess.run([*pip, "--target", str(folder), f"keras=={version}"], check=True)
    if not any((folder / "keras").rglob("*_test.py")):
        for path in location().rglob("*_test.py"):
            target = folder / "keras" / path.relative_to(location())
            if target.parent.exists():
                shutil.copy(path, target)
    return folder


def keras_of(version: str | None) -> tuple[Path, str, dict[str, str]]:
    """Where Keras is, its version, and what its environment needs."""
    paths = [str(Path(__file__).resolve().parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    if version is not None:
        folder = installed(version)
        return folder / "keras", version, {"PYTHONPATH": os.pathsep.join([str(folder), *paths])}
    return location(), importlib.metadata.version("keras"), {"PYTHONPATH": os.pathsep.join(paths)}


def run(
    keras: Path, families: list[str], environment: dict[str, str], options: argparse.Namespace, *, http: bool
) -> Outcomes:
    """Runs pytest over the families and returns how each test ended."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outcomes.json"
        command = [sys.executable, "-P", "-m", "pytest", "-p", "keras_suite.plugin", "-p", "no:cacheprovider"]
        command += ["-c", os.devnull, f"--rootdir={keras}", "-o", "python_files=*_test.py", "-W", "ignore"]
        command += ["-q", "--no-header", "--tb=no", "--timeout=300", f"--numprocesses={options.workers}"]
        command += ["--maxprocesses=8", "--dist=worksteal", "--continue-on-collection-errors"]
        command += [*(["-k", options.k] if options.k else [])]
        command += [str(keras / FAMILIES[family]) for family in families]
        if http:
            command = [sys.executable, str(ROOT / "scripts" / "with_server.py"), *command]
        # Processes of xdist must collect the same tests in one order; Keras draws some of them from sets.
        # Test processes share the cores: threads of small matrix products would wait for each other.
        fixed = {OUTCOMES: str(file), "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
        variables = os.environ | environment | fixed
        # pytest runs away from the sources: a process of xdist has the current folder on its path.
        subprocess.run(command, cwd=folder, env=variables, check=False)
        if not file.exists():
            raise SystemExit("keras-tests: pytest did not write its outcomes; its output says why")
        read: dict[str, list[str]] = json.loads(file.read_text(encoding="utf-8"))
    return {node: (outcome, error) for node, (outcome, error) in read.items()}


def family_of(node: str) -> str:
    """The family of a test; of nested folders the most precise."""
    families = [name for name in FAMILIES if node.startswith(FAMILIES[name])]
    if not families:
        raise SystemExit(f"keras-tests: pytest reports about {node!r}; its output says why")
    return max(families, key=lambda name: len(FAMILIES[name]))


def counts_of(version: str, outcomes: Outcomes) -> dict[str, Counter[str]]:
    """By family, how many of the tests that TensorFlow passes passed, failed and were skipped."""
    not_passed = not_passed_on_tensorflow(version) or set()
    counts: dict[str, Counter[str]] = {}
    for node, (outcome, _) in outcomes.items():
        if node not in not_passed:
            counts.setdefault(family_of(node), Counter())["failed" if outcome in FAILED else outcome] += 1
    return dict(sorted(counts.items()))


def report(version: str, outcomes: Outcomes, *, http: bool) -> int:
    """Prints a table of families and what is wrong; returns the status. A test that is skipped does not pass."""
    counts = counts_of(version, outcomes)
    print(f"{'of what TensorFlow passes':<27} {'passed':>7} {'failed':>7} {'skipped':>7}   (Keras {version})")
    for title, families in (("must pass", MUST_PASS), ("others", OTHERS)):
        rows = {name: family for name, family in counts.items() if name in families}
        for name, family in [*rows.items(), (title, _sum(rows))] if rows else ():
            print(f"{name:<27} {family['passed']:>7} {family['failed']:>7} {family['skipped']:>7}   {_share(family)}")
    problems = problems_of(version, outcomes, http=http)
    for problem in problems:
        print(f"\n{problem}")
    return int(bool(problems))


def problems_of(version: str, outcomes: Outcomes, *, http: bool = False) -> list[str]:
    """What is wrong with the outcomes of the families that must pass."""
    not_passed = not_passed_on_tensorflow(version)
    expected = ExpectedFailures(version, http=http)
    outcomes = {node: outcome for node, outcome in outcomes.items() if family_of(node) in MUST_PASS}
    unexpected = [
        f"{node}: {error or outcome}"
        for node, (outcome, error) in outcomes.items()
        if outcome != "passed" and node not in (not_passed or ()) and not expected.reason(node)
    ]
    problems = [
        "\n  ".join([f"{len(lines)} {title}:", *lines[:MAXIMUM_LISTED]])
        for title, lines in (
            ("unexpected failures or skipped tests", unexpected),
            ("tests that expected_failures.toml names passed: remove them there", expected.passing(outcomes)),
        )
        if lines
    ]
    if not_passed is None:
        problems.append(f"What TensorFlow passes was not recorded for Keras {version}.")
    total = _sum(counts_of(version, outcomes))
    if outcomes and total["passed"] < SHARE * total.total():
        problems.append(f"{_share(total)} of what TensorFlow passes: at least {100 * SHARE:.0f} % must.")
    return problems


def _sum(counts: dict[str, Counter[str]]) -> Counter[str]:
    return sum(counts.values(), Counter())


def _share(counts: Counter[str]) -> str:
    return f"{100 * counts['passed'] / max(counts.total(), 1):.1f} %"


def matrix(families: list[str], options: argparse.Namespace) -> int:
    """Runs several versions both ways; prints a Markdown table of the shares by family; returns the status."""
    columns: dict[str, dict[str, Counter[str]]] = {}
    status = 0
    for wanted in (*VERSIONS, None):
        keras, version, environment = keras_of(wanted)
        for http in (False, True):
            outcomes = run(keras, families, environment, options, http=http)
            status |= report(version, outcomes, http=http)
            columns[f"{version}, {'HTTP' if http else 'in-process'}"] = counts_of(version, outcomes)
    totals = {title: _sum(counts) for title, counts in columns.items()}
    print("\n| family |", " | ".join(columns), "|\n| --- |" + " --- |" * len(columns))
    for name in [*families, "all"]:
        cells = [totals[title] if name == "all" else counts.get(name, Counter()) for title, counts in columns.items()]
        print(f"| {name} |", " | ".join(f"{cell['passed']} of {cell.total()}" for cell in cells), "|")
    print("| share |", " | ".join(_share(total) for total in totals.values()), "|")
    return status


def main() -> int:
    options = arguments()
    families = sorted(FAMILIES) if options.all else options.family or sorted(MUST_PASS)
    has_teletape = importlib.util.find_spec("teletape") is not None
    if options.record and has_teletape:
        raise SystemExit("keras-tests: --record is for TensorFlow's Python, in an environment without Teletape")
    if options.matrix:
        return matrix(families, options)
    keras, version, environment = keras_of(options.keras)
    outcomes = run(keras, families, environment, options, http=options.http)
    if options.json:
        Path(options.json).write_text(json.dumps(outcomes, indent=0), encoding="utf-8")
    if options.record:
        record(version, outcomes)
        print(Counter(outcome for outcome, _ in outcomes.values()))
        return 0
    return report(version, outcomes, http=options.http)


if __name__ == "__main__":
    sys.exit(main())
