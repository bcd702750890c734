"""What a session has."""

from typing import Any

import numpy as np

from teletape_engine.commands import Batch, Fetch
from teletape_engine.commands.results import Fetched
from teletape_engine.session.session import Session


def contents(session: Session) -> dict[str, list[Any]]:
    """What ids name, with the facts of everything, and the numbers of tensors and variables."""
    listed = {kind: session.listing(kind) for kind in ("tensor", "variable", "slices", "tape", "function")}
    values = {}
    for entry in listed["tensor"] + listed["variable"]:
        [result] = Session.execute(session, Batch((Fetch(entry["id"]),))).results
        assert isinstance(result, Fetched)
        values[entry["id"]] = np.asarray(result.array).tolist()
    return listed | {"values": [values]}
