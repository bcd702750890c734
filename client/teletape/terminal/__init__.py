"""What a person sees of sessions and servers: lists of sessions, and the command `python -m teletape`."""
