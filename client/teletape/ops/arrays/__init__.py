"""TensorFlow's functions that create, rearrange, pick, count and order elements: more than one call of an op."""
