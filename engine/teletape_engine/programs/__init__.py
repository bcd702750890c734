"""Programs: lists of commands kept as data, with loops, branches, batching and gradients."""

from teletape_engine.programs import control_flow, custom_call  # noqa: F401  # each registers its commands in FLOWS
