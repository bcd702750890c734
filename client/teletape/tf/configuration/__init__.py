"""`tf.config` and `tf.version`: settings about devices and about the way in which ops run."""
