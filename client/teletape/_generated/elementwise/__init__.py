"""TensorFlow's functions of teletape_engine.ops.elementwise, written by `make reference`."""
