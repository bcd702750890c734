"""`tf.onnx.save` and `tf.stablehlo.save`: a function as a file that other runtimes run."""
