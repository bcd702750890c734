"""The op catalogue: the record of an op, its binding to a call, and the decorators that define ops."""
