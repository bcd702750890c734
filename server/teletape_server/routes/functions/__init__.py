"""A session's functions: calls, derivatives, loops, training."""
