"""TensorFlow's functions of teletape_engine.ops.nn, written by `make reference`."""
