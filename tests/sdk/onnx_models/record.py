"""Stores what ONNX Runtime answers to the cases, in answers.npz. Run by `make onnx-answers`, with its own Python."""

from pathlib import Path

import numpy as np
import onnxruntime
from onnx_cases import CASES

FOLDER = Path(__file__).resolve().parent


def main() -> None:
    """Runs every case and writes the file; a case that ONNX Runtime does not run is an error."""
    answers = {}
    for label, case in CASES.items():
        session = onnxruntime.InferenceSession(case.model, providers=["CPUExecutionProvider"])
        for number, result in enumerate(session.run(None, case.inputs)):
            answers[f"{label}|{number}"] = result
    np.savez_compressed(FOLDER / "answers.npz", **answers)
    print(f"{len(CASES)} cases, {(FOLDER / 'answers.npz').stat().st_size} bytes")


if __name__ == "__main__":
    main()
