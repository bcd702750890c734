"""TensorFlow's functions on tensors: derived from the catalogue, or written by hand for arguments of their own."""
