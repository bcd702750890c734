"""Methods about a session's tapes: derivatives, explanations, graphs."""
