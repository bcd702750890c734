"""Every program of tests/conformance gives on a GPU what it gave under TensorFlow, or says what a GPU does not offer.

On the substitute for CuPy in any case; on the machine's GPU with `-m gpu`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from conformance.choose import repeats
from conformance.program import Program, load
from conformance.test_conformance import difference, skip_if_python_differs
from conformance.worker import ProgramFailed, Worker

PROGRAMS = load()
MODULES = {"on the substitute": "conformance.on_substitute", "on a GPU": "teletape"}
#: What a GPU does not offer: the words of the refusal.
REFUSALS = (
    "bfloat16 is not available on device gpu",
    "is not offered on a GPU: ",
)
#: Programs whose result is another one on a GPU, with the reason.
OTHER = {
    "conversions.places": "x.gpu() moves nothing, where the session has a GPU",
    "ops_argument_forms.factors_and_inverses_of_float16": "a cast to bfloat16 is refused before what it is cast for",
    "ops_linalg_forms.dtypes_that_functions_refuse": "a tensor of bfloat16 is refused before the function refuses it",
}

#: The same of a real GPU alone.
OTHER_ON_GPU = {
    "ops_image.conversions": "a number above the largest int32 becomes the largest, as by TensorFlow on a GPU",
    "ops_image.colours_that_have_gradients": "a difference of sums, which the device adds in another order, is near 0",
}

#: Subjects that are the client's: how it reads programs, files and settings. What they compute, others compute too.
CLIENT = ("autograph_", "checkpoints", "configuration", "distribution", "files", "keras_", "messages", "printing")


class Workers:
    """A process with a GPU session for each kind of GPU, and one that programs of their own process are forked from."""

    def __init__(self) -> None:
        self.started: dict[tuple[str, bool], Worker] = {}

    def run(self, program: Program, module: str) -> object:
        key = module, program.fresh
        if key not in self.started or not self.started[key].alive:
            self.started[key] = Worker(module, environment={"TELETAPE_DEVICE": "gpu"}, forks=program.fresh)
        return self.started[key].run(program.id)

    def close(self) -> None:
        for worker in self.started.values():
            worker.close()


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    workers = Workers()
    yield workers
    workers.close()


#: Programs whose every op others apply too, to inputs of such dtypes and ranks.
REPEATS = repeats("ops")


def cases() -> Iterator[Any]:
    """Every program on a GPU; on the substitute without those of CLIENT."""
    for name, program in PROGRAMS.items():
        if not name.startswith(CLIENT):
            marks = [pytest.mark.more] if name in REPEATS else []
            yield pytest.param(program, "on the substitute", id=f"{name}-on the substitute", marks=marks)
        yield pytest.param(program, "on a GPU", marks=pytest.mark.gpu, id=f"{name}-on a GPU")


@pytest.mark.parametrize(("program", "kind"), [*cases()])
def test_a_program_gives_on_a_gpu_what_it_gave(program: Program, kind: str, workers: Workers) -> None:
    skip_if_python_differs(program)
    result: object
    try:
        result = workers.run(program, MODULES[kind])
    except ProgramFailed as error:
        result = str(error)
    text = difference(program, result)
    if program.id in OTHER or (kind == "on a GPU" and program.id in OTHER_ON_GPU):
        assert text, "it is no other result now"
        return
    refused = any(refusal in str(result) for refusal in REFUSALS)
    assert not text or refused, f"{program.id}: {text}\n{result if isinstance(result, str) else ''}"
