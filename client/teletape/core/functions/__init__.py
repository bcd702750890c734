"""`tf.function`: traces a Python function into an engine function."""
