"""`tf.autograph`: converts Python's `if`, `for` and `while` on tensors inside `tf.function`.

diastatic-malt, TensorFlow's own source transformation as a library, rewrites the source of a function; the operators
here are what the rewritten code calls.
"""
