"""Random numbers, as TensorFlow draws them from a state or from seeds."""
