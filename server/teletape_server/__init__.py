"""The server: sessions of the tape engine behind HTTP. docs/protocol.md says what it speaks."""
