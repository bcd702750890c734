"""TensorFlow's functions of teletape_engine.ops.images, written by `make reference`."""
