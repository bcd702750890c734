"""Mounts Keras 3 from PyPI, unmodified: its backend for TensorFlow gets the public names of `teletape` instead.

This package has only the seam to Keras. A public name of TensorFlow that Keras needs is public in `teletape`.
"""
