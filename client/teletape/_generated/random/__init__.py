"""TensorFlow's functions of teletape_engine.ops.random, written by `make reference`."""
