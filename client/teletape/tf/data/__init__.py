"""`tf.data`: datasets over arrays, generators and files.

Elements of arrays are shuffled and batched by their indices; a server gets the arrays once, and gathers each batch
there. As in TensorFlow, no gradient passes through a dataset: its elements are constants.
"""
