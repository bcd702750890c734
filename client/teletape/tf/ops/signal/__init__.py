"""`tf.signal` functions that are more than one call of an op."""
