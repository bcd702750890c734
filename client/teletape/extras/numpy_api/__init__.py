"""`tf.experimental.numpy`: functions with NumPy's names, arguments and dtypes, on tensors."""

from teletape.extras.numpy_api import arranging, behavior, creation, elementwise, products, reductions, types

#: The modules of the public functions, except those of `random`.
MODULES = (creation, elementwise, reductions, arranging, products, types, behavior)
