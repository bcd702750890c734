"""`tf.Variable`, its scatter methods, `tf.Module` and `tf.name_scope`."""
