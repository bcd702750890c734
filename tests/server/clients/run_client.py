"""Imports every module of a generated Python client, and runs the README's program with it: run_client.py URL."""

import importlib
import pkgutil
import sys

from teletape_client.api.run import run_run

import teletape_client
from teletape_client import Client
from teletape_client.models import (
    GradientCommand,
    OpCommand,
    Problem,
    Run,
    RunAnswer,
    TapeOpenCommand,
    VariableCommand,
)

modules = [module.name for module in pkgutil.walk_packages(teletape_client.__path__, "teletape_client.")]
for module in modules:
    importlib.import_module(module)
print(len(modules), "modules")

with Client(base_url=sys.argv[1]) as client:
    program = [
        VariableCommand(do="variable", id="x", value=2.0),
        TapeOpenCommand(do="tape.open", id="t"),
        OpCommand(do="op", op="sin", inputs=["x"], outputs=["s"]),
        OpCommand(do="op", op="mul", inputs=["s", "x"], outputs=["y"]),
        GradientCommand(do="gradient", tape="t", targets=["y"], sources=["x"], outputs=["dx"]),
    ]
    answer = run_run.sync(client=client, body=Run(commands=program, fetch=["y", "dx"]))
    assert isinstance(answer, RunAnswer), answer
    print("dx", answer.values.to_dict()["dx"]["data"])

    refusal = run_run.sync(client=client, body=Run(commands=program, fetch=["nothing"]))
    assert isinstance(refusal, Problem), refusal
    print("refused", refusal.code)
