"""Ops that create, cast, index and rearrange arrays."""
