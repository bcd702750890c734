"""What `tf.session().profile()` measures and shows: time by op and by line, bytes, requests, and the waiting."""
