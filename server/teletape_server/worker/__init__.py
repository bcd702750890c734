"""What runs in a session's process, and in that of a GPU: they receive requests and execute them on the engine."""
