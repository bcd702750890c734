"""`tf.GradientTape`, `tf.autodiff.ForwardAccumulator`, custom gradients, Jacobians."""
