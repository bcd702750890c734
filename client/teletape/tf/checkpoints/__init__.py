"""Checkpoints of variables, modules and Keras objects: `tf.train`, in safetensors files with an index."""
