"""`tf.io`, and functions that read and write files: paths, contents, images and sound, all in this process."""
