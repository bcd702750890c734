"""One module for each program; it holds the program once for each way to write it.

`inputs(**size)`   the arrays that each way begins with, always the same
`tensorflow`       for Teletape and for TensorFlow, which is the first argument
`by_hand`          NumPy, with buffers prepared where that helps: what a patient person writes
`pytorch`, `jax`   for those libraries, the first argument
`teletape`         only if it is not what one writes for TensorFlow

Each returns the step and its arguments, as arrays. A step returns a list. A `jax` step is a pure function.
"""
