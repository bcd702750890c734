"""The methods that requests call, a file for each resource: check a body, make commands, execute, answer.

`worker.models` describes the bodies, `worker.bodies` reads and writes them. Importing this package registers the
methods.
"""

# ruff: noqa: F401  # importing the modules registers their methods
from teletape_server.worker.handlers.functions import function_questions, functions, loops, training
from teletape_server.worker.handlers.session import batches, ops, run, tensors, variables
from teletape_server.worker.handlers.tapes import checks, explain, graphs, nodes, questions, tapes
