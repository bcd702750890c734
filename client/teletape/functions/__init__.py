"""`tf.function`: tracing a Python function into a program."""
