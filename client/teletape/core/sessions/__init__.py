"""Sessions: where ops run, in this process or on a server."""
