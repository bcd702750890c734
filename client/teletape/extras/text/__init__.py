"""`tf.strings`: cuts, joins, compares, hashes and counts strings, all in this process."""
