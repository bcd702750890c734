"""`tf.io` and what reads the bytes of files: paths, contents, images and sound, all in this process."""
