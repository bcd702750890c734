"""Where sessions run: the protocol of a host, and worker processes that implement it."""
