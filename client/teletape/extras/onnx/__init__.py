"""`tf.onnx`: an ONNX graph becomes a function of tensors."""
