"""`tf.SparseTensor` and the functions of `tf.sparse`, `tf.sets` and sparse lookups."""
