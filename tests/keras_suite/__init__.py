"""Keras's own tests, from its installed wheel, on Teletape: `make keras-tests`."""
