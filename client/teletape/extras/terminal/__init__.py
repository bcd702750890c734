"""Sessions and servers for people: lists of sessions, and the command `python -m teletape`."""
