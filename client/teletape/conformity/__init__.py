"""Checks of any server's REST interface: `python -m teletape.conformity URL`. They need httpx and NumPy alone."""
