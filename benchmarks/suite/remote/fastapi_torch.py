"""The server that one writes in an afternoon: FastAPI around PyTorch, raw bodies both ways.

POST /load/PROGRAM   the program's size, as JSON
POST /step           the bytes of its arguments, in order; the bytes of its results
"""

import importlib
import sys

import numpy as np
import torch
import uvicorn
from fastapi import FastAPI, Request, Response

app = FastAPI()
state = {}


@app.post("/load/{program}")
async def load(program: str, request: Request) -> Response:
    module = importlib.import_module(f"suite.programs.{program}")
    state["step"], state["arguments"] = module.pytorch(torch, module.inputs(**await request.json()))
    return Response()


@app.post("/step")
async def step(request: Request) -> Response:
    body, start, tensors = bytearray(await request.body()), 0, []
    for argument in state["arguments"]:
        array = np.frombuffer(body, argument.dtype, argument.size, start).reshape(argument.shape)
        tensors.append(torch.from_numpy(array))
        start += array.nbytes
    results = state["step"](*tensors)
    return Response(b"".join(result.detach().numpy().tobytes() for result in results))


if __name__ == "__main__":
    torch.set_num_threads(1)
    uvicorn.run(app, port=int(sys.argv[1]), access_log=False, log_level="warning")
