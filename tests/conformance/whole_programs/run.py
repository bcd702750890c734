"""Runs examples as whole programs and prints what their main() gave: one way in for the tests and for the recorder.

    python tests/conformance/whole_programs/run.py pinn  # under teletape; TELETAPE_URL=http://… for a server
    ~/tensorflow/bin/python tests/conformance/whole_programs/run.py --record  # under TensorFlow 2.21, into results.json

The examples import `teletape` and use nothing that TensorFlow has not, so that one file runs under both. Recording
needs scikit-learn beside TensorFlow; docs/conformance.md says how such an environment is made.
"""

import argparse
import importlib
import json
import os
import runpy
import sys
import time
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
RESULTS = Path(__file__).resolve().parent / "results.json"
NAMES = (
    "regression",
    "convnet",
    "lstm",
    "transformer",
    "pinn",
    "wgan_gp",
    "maml",
    "newton_cg",
    "gaussian_process",
)
# As the conformance programs are recorded: oneDNN changes the order of sums from one processor to another.
ENVIRONMENT = {"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}


def run(name: str) -> dict[str, float]:
    """What the example's main() gave."""
    results: dict[str, float] = runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]()
    return {what: float(value) for what, value in results.items()}


def record() -> None:
    """Every example's results under TensorFlow, one line each."""
    os.environ.update(ENVIRONMENT)
    sys.modules["teletape"] = importlib.import_module("tensorflow")
    lines = [f"{json.dumps(name)}: {json.dumps(run(name))}" for name in NAMES]
    RESULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", choices=NAMES)
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    if arguments.record:
        record()
        return
    import teletape as tf

    start = time.perf_counter()
    results = run(arguments.name)
    seconds = time.perf_counter() - start
    sys.stdout.write(json.dumps({"results": results, "requests": tf.session().requests, "seconds": seconds}) + "\n")


if __name__ == "__main__":
    main()
