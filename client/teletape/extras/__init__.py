"""Parts of TensorFlow's interface that are loaded when a program first names them: nothing else here needs them."""
