"""`tf.onnx`: an ONNX graph becomes a function of tensors, and a function an ONNX graph."""
