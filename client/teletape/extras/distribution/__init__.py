"""`tf.distribute` with one replica: a program for several devices runs unchanged, on its session's device."""
