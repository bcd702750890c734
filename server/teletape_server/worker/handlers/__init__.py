"""The methods that requests call, one file a resource: check a body, make commands, execute, answer.

`worker.models` describes the bodies, `worker.bodies` reads and writes them. Importing this package registers the
methods.
"""

from teletape_server.worker.handlers import (  # noqa: F401  # importing them registers their methods
    batches,
    checks,
    explain,
    function_questions,
    functions,
    graphs,
    loops,
    nodes,
    ops,
    questions,
    run,
    tapes,
    tensors,
    training,
    variables,
)
