"""Plans: functions that were called before, as flat lists of NumPy calls into memory that is allocated once.

`lower/` runs a function and notes what it does as the instructions of `ir/`; `run/` places their memory and runs them,
in C or from Python; `gpu/` is the same for a GPU; the modules here say which function has which plan, and when.

A plan gives the bytes that the interpreter (`functions.function.Function.run`) gives. The interpreter stays the
reference: whatever a plan cannot do, or fails to do, is run by it.
"""
