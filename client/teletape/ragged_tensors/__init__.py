"""`tf.RaggedTensor` and `tf.ragged`: rows of several lengths, and what functions of tensors do with them."""
