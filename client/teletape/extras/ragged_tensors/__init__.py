"""`tf.RaggedTensor` and `tf.ragged`: rows of several lengths, and functions of tensors on them."""
