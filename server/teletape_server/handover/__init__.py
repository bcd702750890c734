"""Connections that a session's process serves itself, with what it shares with the server for that."""
