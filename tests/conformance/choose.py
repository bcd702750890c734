"""Chooses programs that repeat what others do: `make test` leaves them out over HTTP, or on the substitute for CuPy.

    .venv/bin/python -P tests/conformance/choose.py

Runs every program over a loopback, the wire and the engine without a server, and writes repeats.json:

commands    programs whose every kind of command others send too: over HTTP only commands travel. A kind is a command
            with its op, the kinds of its inputs, its attributes but for their numbers, and the command before it
ops         programs whose every op others apply too, to inputs of these dtypes and ranks, with these attributes

A program that is in neither list, such as a new one, runs everywhere. `make more` runs the others too.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from conformance.program import load

REPEATS = Path(__file__).with_name("repeats.json")
#: Seconds that any program takes: the choice prefers few quick programs to many.
_AT_LEAST = 0.003
#: Inputs of one command that are looked at one by one; of more only the kinds that occur.
_FEW = 3


def repeats(of: str) -> frozenset[str]:
    """The programs of one of the lists."""
    files: dict[str, list[str]] = json.loads(REPEATS.read_text(encoding="utf-8"))[of]
    return frozenset(f"{file}.{name}" for file, names in files.items() for name in names)


# ---------------------------------------------------------------------------------------------------- kinds of commands
def kinds_of_commands(batch: Any) -> Iterator[Hashable]:
    """The kinds of the commands of a batch, and what happens to its ids."""
    before = None
    for command in batch.commands:
        steps = getattr(command, "steps", ())
        yield from ((command.verb, form(step)) for step in steps)
        yield form(command) if not steps else (command.verb, len(command.inputs) > 1, len(command.outputs) > 1)
        yield before, command.verb
        before = command.verb
    yield batch.on_failure, bool(batch.releases), bool(batch.temporaries), batch.replace


def form(command: Any) -> str:
    """A command without what each program has otherwise: ids, numbers, call sites, texts."""
    from teletape_engine.commands.base import FieldKind
    from teletape_engine.commands.schema import FIELDS

    def member(kind: FieldKind, value: Any) -> Hashable:
        if isinstance(value, np.ndarray):
            return value.dtype.name, value.ndim
        match kind:
            case FieldKind.ATTRIBUTES:
                return attributes(value)
            case FieldKind.FLAG:
                return bool(value)
            case FieldKind.NAME:
                return str(value) if value in _WORDS else "text"
            case _:
                return type(getattr(value, "array", value)).__name__

    rows: list[Hashable] = [getattr(command, "op", command.verb)]
    for field in FIELDS[command.verb].values():
        value = getattr(command, field.name)
        if value is None or not field.is_list:
            rows.append((field.name, None if value is None else member(field.kind, value)))
            continue
        members: list[Any] = [None if each is None else member(field.kind, each) for each in value]
        rows.append((field.name, tuple(members if len(members) <= _FEW else sorted({*map(repr, members)}))))
    return repr(rows)


#: Names that are settings.
_WORDS = frozenset(("none", "zero", "values", "indices", "set", "add", "sub"))


def attributes(attrs: Mapping[str, Any]) -> Hashable:
    """Attributes with the words and truth values among them, without their numbers."""
    return tuple([(name, value if isinstance(value, str | bool) else None) for name, value in sorted(attrs.items())])


# ---------------------------------------------------------------------------------------------------------- the choice
def observed() -> dict[str, tuple[float, set[Hashable], set[Hashable]]]:
    """For each program its seconds, the kinds of its commands, and those of its ops."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "sdk" / "remote"))
    from loopback import Loopback, session_on

    import teletape as tf
    from teletape.core.sessions.current import use
    from teletape_engine.recording.executor import Executor

    ops: set[Hashable] = set()
    apply = Executor.apply

    def noted(self: Executor, op: Any, inputs: Any, *more: Any, **named: Any) -> Any:
        attrs = more[0] if more else named.get("attrs", {})
        kinds = [(repr(each.spec.dtype), len(each.spec.shape)) for each in inputs if each.uid is not None]
        ops.add((op.name, tuple(kinds), attributes(attrs)))
        return apply(self, op, inputs, *more, **named)

    Executor.apply = noted  # type: ignore[method-assign]
    loopback = Loopback()
    use(session_on(loopback))
    rows = {}
    for name, program in load().items():
        if not program.fresh:
            ops.clear()
            loopback.batches.clear()
            began = time.process_time()
            program.function(tf, np)
            seconds = time.process_time() - began
            rows[name] = seconds, {kind for batch in loopback.batches for kind in kinds_of_commands(batch)}, {*ops}
    return rows


def chosen(kinds: Mapping[str, set[Hashable]], seconds: Mapping[str, float]) -> set[str]:
    """Programs that together have every kind: again and again the one with the most new kinds for its time."""
    missing = set().union(*kinds.values())
    worth = {name: len(own) / (seconds[name] + _AT_LEAST) for name, own in kinds.items()}
    choice: set[str] = set()
    while missing:
        name = max(worth, key=worth.__getitem__)
        new = len(kinds[name] & missing) / (seconds[name] + _AT_LEAST)
        if new < worth[name]:
            worth[name] = new  # it was worth more before others were chosen
            continue
        choice.add(name)
        missing -= kinds[name]
        del worth[name]
    return choice


def main() -> None:
    """Writes the lists and prints how much they leave."""
    rows = observed()
    seconds = {name: row[0] for name, row in rows.items()}
    lists = []
    for title, column in (("commands", 1), ("ops", 2)):
        kinds: dict[str, set[Hashable]] = {name: row[column] for name, row in rows.items()}
        choice = chosen(kinds, seconds)
        files: dict[str, list[str]] = {}
        for name in sorted(rows.keys() - choice):
            files.setdefault(name.split(".")[0], []).append(name.split(".")[1])
        lines = ",\n".join(f"{json.dumps(file)}: {json.dumps(names)}" for file, names in files.items())
        lists.append(f"{json.dumps(title)}: {{\n{lines}\n}}")
        share = sum(seconds[name] for name in choice) / sum(seconds.values())
        count = len(set().union(*kinds.values()))
        sys.stdout.write(f"{title}: {count} kinds in {len(choice)} of {len(rows)} programs, {share:.0%} of the time\n")
    REPEATS.write_text("{\n" + ",\n".join(lists) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
