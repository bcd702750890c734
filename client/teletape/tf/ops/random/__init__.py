"""`tf.random`: numbers drawn from a state or from seeds, with TensorFlow's numbers where they are known."""
