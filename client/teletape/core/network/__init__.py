"""The connection to a server: HTTP with retries, frames over a separate socket, and the display of progress."""
