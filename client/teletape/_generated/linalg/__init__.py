"""TensorFlow's functions of teletape_engine.ops.linalg, written by `make reference`."""
