"""The engine: ops, tapes, derivatives, programs, explanations and sessions, on NumPy or CuPy arrays.."""
