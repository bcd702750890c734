"""TensorFlow's functions on arrays that take more than one op: create, rearrange, pick, count, order."""
