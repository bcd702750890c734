"""The process of one session: it receives requests from the front and executes them on the engine."""
