"""`tf.experimental.numpy`: functions with NumPy's names, arguments and dtypes, on tensors."""

from teletape.numpy_api import arranging, behavior, creation, elementwise, products, reductions, types

#: What holds the public functions, but for those of `random`.
MODULES = (creation, elementwise, reductions, arranging, products, types, behavior)
