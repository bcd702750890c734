"""Bodies about a session's values, ops and batches."""
