"""TensorFlow's functions that are one call of an op, written by `make reference` from their records."""
