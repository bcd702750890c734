"""TensorFlow's functions and classes, on top of `core`."""
