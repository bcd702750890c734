"""The engine: ops, tapes, derivatives, functions, explanations and sessions, on NumPy or CuPy arrays."""
