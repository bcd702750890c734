"""The methods that requests call, a file for each resource: check a body, make commands, execute, answer.

`models` describes the bodies, `bodies` here reads and writes them. Importing this package registers the methods, in the
order in which the API page has the endpoints: it can be run from top to bottom.
"""

# ruff: noqa: F401  # importing the modules registers their methods
# isort: off
from teletape_server.handlers.session import variables, tensors
from teletape_server.handlers.tapes import tapes, questions, explain, graphs, nodes, checks, reset
from teletape_server.handlers.session import ops
from teletape_server.handlers.functions import functions, function_questions, loops, training
from teletape_server.handlers.functions.gradients import accumulators
from teletape_server.handlers.session import batches, price, run
from teletape_server.handlers.published import preparing, answering
