"""The server: sessions of the tape engine over HTTP. docs/protocol.md and docs/rest.md describe its interface."""
