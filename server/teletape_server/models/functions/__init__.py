"""Bodies about a session's functions: calls, derivatives, loops, training."""
