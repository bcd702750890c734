"""A session's tapes: what they record, the questions about them, their graphs."""
