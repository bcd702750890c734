"""Ops that act on each element."""
