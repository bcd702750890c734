"""`tf.config` and `tf.version`: what a program says of its devices before it computes, and how ops run."""
