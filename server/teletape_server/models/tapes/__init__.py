"""Bodies about a session's tapes: recording, derivatives, explanations, graphs."""
