"""The profile of `tf.session().profile()`: time by op and by line, bytes, requests, and waits."""
