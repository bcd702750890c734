"""Plans: functions that were called before, as flat lists of NumPy calls into memory that is allocated once.

A plan gives the bytes that the interpreter (`functions.function.Function.run`) gives. The interpreter stays the
reference: whatever a plan cannot do, or fails to do, is run by it.
"""
