"""The REST resources as a session's process sees them: bodies checked, turned into commands, executed, answered.

One file a resource, each a set of kinds (`hosts.kinds`); `models` says what bodies look like, `bodies` reads and
writes them.
"""
