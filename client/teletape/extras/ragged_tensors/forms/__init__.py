"""Functions of tensors on ragged tensors: elementwise ops, ops with a form of their own, functions by hand."""
