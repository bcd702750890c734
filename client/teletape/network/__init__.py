"""The way to a server: HTTP with retries, frames over a socket of their own, and what is shown while one waits."""
