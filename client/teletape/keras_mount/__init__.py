"""Mounts Keras 3 from PyPI, unmodified: its backend for TensorFlow gets the public names of `teletape` instead.

What is here is Keras's seam alone. A public name of TensorFlow that Keras needs is public in `teletape`.
"""
