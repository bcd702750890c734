"""`tf.linalg` functions that are more than one call of an op; and tensors scaled down to a norm."""
