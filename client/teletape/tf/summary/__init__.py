"""`tf.summary`: event files for TensorBoard, written through the tensorboardX package where the program runs."""
