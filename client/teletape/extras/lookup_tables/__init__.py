"""`tf.lookup`: tables in this process, from keys to values."""
