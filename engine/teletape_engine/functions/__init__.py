"""Functions: saved lists of steps on named inputs, with loops, branches, batching and gradients."""

from teletape_engine.functions import control_flow, custom_call, differentiated  # noqa: F401  # each registers its commands in RUNNERS
