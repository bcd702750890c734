"""What functions of tensors do with ragged ones: elementwise ops, ops with a form of their own, functions by hand."""
