"""A session: its values by id, and the execution of batches of commands."""
