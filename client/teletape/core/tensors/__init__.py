"""Tensors, variables and their dtypes, shapes and conversions."""
