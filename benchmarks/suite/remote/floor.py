"""A server without an engine: raw bodies in, NumPy by hand, raw bodies out, directly on ASGI.

POST /load/PROGRAM   the program's size, as JSON
POST /step           the bytes of its arguments, in order; the bytes of its results
"""

import importlib
import json
import sys

import numpy as np
import uvicorn

_loaded = {}


def load(program, size):
    """Makes a program's step, and the shapes of its arguments."""
    module = importlib.import_module(f"suite.programs.{program}")
    step, arguments = module.by_hand(module.inputs(**size))
    _loaded["step"], _loaded["specs"] = step, [(a.shape, a.dtype, a.size, a.nbytes) for a in arguments]


def run(body):
    """The bytes of a step's results."""
    arguments, start = [], 0
    for shape, dtype, size, nbytes in _loaded["specs"]:
        arguments.append(np.frombuffer(body, dtype, size, start).reshape(shape))
        start += nbytes
    return b"".join([result.tobytes() for result in _loaded["step"](*arguments)])


async def app(scope, receive, send):
    """The application."""
    if scope["type"] == "lifespan":
        return
    parts, more = [], True
    while more:
        message = await receive()
        parts.append(message["body"])
        more = message.get("more_body", False)
    body = parts[0] if len(parts) == 1 else b"".join(parts)
    _, _, program = scope["path"].partition("/load/")
    answer = b""
    if program:
        load(program, json.loads(body))
    else:
        answer = run(body)
    head = [(b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": answer})


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), lifespan="off", access_log=False, log_level="warning")
