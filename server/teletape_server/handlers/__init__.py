"""The methods that requests call, a file for each resource: check a body, make commands, execute, answer.

`models` describes the bodies, `bodies` here reads and writes them. Importing this package registers the
methods.
"""

# ruff: noqa: F401  # importing the modules registers their methods
from teletape_server.handlers.functions import function_questions, functions, loops, training
from teletape_server.handlers.session import batches, ops, run, tensors, variables
from teletape_server.handlers.tapes import checks, explain, graphs, nodes, questions, tapes
