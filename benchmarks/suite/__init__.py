"""The benchmark suite: rows, the systems that are measured, and the processes that measure them in turn."""
