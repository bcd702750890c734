"""A session and what it holds: values by id, batches of commands, the stream of its owner's sessions."""
