"""TensorFlow's functions of teletape_engine.ops.shapes, written by `make reference`."""
