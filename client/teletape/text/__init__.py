"""`tf.strings`: strings cut, joined, compared, hashed and counted, all in this process."""
