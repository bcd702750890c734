"""`tf.while_loop`, `tf.cond`, `tf.map_fn` and the like, run in Python or sent as one command."""
