"""TensorFlow's own server, over gRPC."""

import sys

import tensorflow as tf

if __name__ == "__main__":
    tf.config.threading.set_intra_op_parallelism_threads(1)
    server = tf.distribute.Server({"worker": [f"127.0.0.1:{sys.argv[1]}"]}, job_name="worker", task_index=0)
    server.join()
