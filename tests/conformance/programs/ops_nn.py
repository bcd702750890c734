"""Activations, softmax, bias and the cross-entropies."""

from conformance.probes import derivatives, raises
from conformance.program import program

LOGITS = [[1.0, 2.0, -0.5], [0.3, -1.2, 0.8]]


@program()
def activations(tf, np):
    functions = {
        "relu": tf.nn.relu,
        "leaky_relu": tf.nn.leaky_relu,
        "leaky_relu_0.3": lambda x: tf.nn.leaky_relu(x, alpha=0.3),
        "elu": tf.nn.elu,
        "relu6": tf.nn.relu6,
        "softplus": tf.nn.softplus,
        "sigmoid": tf.nn.sigmoid,
        "tanh": tf.nn.tanh,
    }
    return {name: derivatives(tf, function, [-1.7, -0.2, 0.6, 2.4, 6.5]) for name, function in functions.items()}


@program()
def activations_of_ints(tf, np):
    return [
        tf.nn.relu(tf.constant([-2, 3])),
        tf.nn.relu6(tf.constant([-2, 9])),
        raises(lambda: tf.nn.softplus(tf.constant([1]))),
    ]


@program()
def softmax(tf, np):
    return {
        "softmax": derivatives(tf, tf.nn.softmax, LOGITS),
        "along_the_first": derivatives(tf, lambda x: tf.nn.softmax(x, axis=0), LOGITS),
        "log_softmax": derivatives(tf, tf.nn.log_softmax, LOGITS),
        "log_along_the_first": derivatives(tf, lambda x: tf.nn.log_softmax(x, axis=0), LOGITS),
        "of_a_vector": tf.nn.softmax([1.0, 2.0]),
        "out_of_range": raises(lambda: tf.nn.softmax(tf.ones([2]), axis=1)),
    }


@program()
def bias_add(tf, np):
    return [
        derivatives(tf, lambda x, b: tf.nn.bias_add(x, b) ** 2, LOGITS, [1.0, 2.0, 3.0]),
        tf.nn.bias_add(tf.zeros([2, 2, 3]), [1.0, 2.0, 3.0]),
        raises(lambda: tf.nn.bias_add(tf.zeros([2, 3]), [1.0, 2.0])),
    ]


@program()
def softmax_cross_entropy(tf, np):
    loss = tf.nn.softmax_cross_entropy_with_logits
    labels = [[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]]
    return [
        derivatives(tf, lambda logits: loss(labels=labels, logits=logits), LOGITS),
        derivatives(tf, lambda logits: loss(labels=labels, logits=logits, axis=0), LOGITS),
        derivatives(tf, lambda labels: loss(labels=labels, logits=LOGITS), labels),
        loss(labels=[0.0, 1.0], logits=tf.constant([1.0, 2.0])),
        loss(tf.constant(labels), tf.constant(LOGITS)),
        raises(lambda: loss(labels=tf.ones([1, 2]), logits=tf.ones([1, 3]))),
    ]


@program()
def softmax_cross_entropy_of_labels_that_do_not_sum_to_one(tf, np):
    logits = tf.Variable(LOGITS)
    with tf.GradientTape() as tape:
        y = tf.nn.softmax_cross_entropy_with_logits(labels=[[0.0, 0.0, 0.0], [2.0, 1.0, 0.0]], logits=logits)
    return [y, tape.gradient(y, logits)]


@program()
def sparse_softmax_cross_entropy(tf, np):
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits
    return [
        derivatives(tf, lambda logits: loss(labels=[2, 0], logits=logits), LOGITS),
        derivatives(tf, lambda logits: loss(labels=[[0, 1]], logits=logits), [[[1.0, 2.0], [0.5, -0.5]]]),
        loss(labels=np.array([1, 1]), logits=tf.constant(LOGITS)),
        loss(labels=tf.constant([1, 1], tf.int64), logits=tf.constant(LOGITS, tf.float64)),
        loss(labels=1, logits=tf.constant([1.0, 2.0])),
        raises(lambda: loss(labels=[1], logits=tf.constant(LOGITS))),
        raises(lambda: loss(labels=[[1, 0]], logits=tf.constant(LOGITS))),
        raises(lambda: loss(labels=[3, 0], logits=tf.constant(LOGITS)).numpy()),
        raises(lambda: loss(labels=[1.0, 0.0], logits=tf.constant(LOGITS))),
    ]


@program()
def sigmoid_cross_entropy(tf, np):
    loss = tf.nn.sigmoid_cross_entropy_with_logits
    return [
        derivatives(tf, lambda z, x: loss(labels=z, logits=x), [0.0, 1.0, 0.5, 1.0], [0.7, -2.0, 3.0, 50.0]),
        loss(labels=tf.constant([1.0]), logits=tf.constant([0.0])),
        raises(lambda: loss(labels=tf.ones([1]), logits=tf.ones([2]))),
    ]


@program()
def cross_entropies_agree(tf, np):
    logits = tf.Variable(LOGITS)
    gradients = []
    with tf.GradientTape(persistent=True) as tape:
        sparse = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 2], logits=logits)
        dense = tf.nn.softmax_cross_entropy_with_logits(labels=tf.one_hot([1, 2], 3), logits=logits)
        written = -tf.reduce_sum(tf.one_hot([1, 2], 3) * tf.nn.log_softmax(logits), axis=1)
    for loss in (sparse, dense, written):
        gradients.append([loss, tape.gradient(loss, logits)])
    return gradients


@program()
def attention_written_out(tf, np):
    q = np.sin(np.arange(12.0)).astype(np.float32).reshape(2, 3, 2)
    k = np.cos(np.arange(12.0)).astype(np.float32).reshape(2, 3, 2)
    v = np.sin(np.arange(12.0) + 1.0).astype(np.float32).reshape(2, 3, 2)

    def attention(q, k, v):
        weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 1.5)
        return tf.matmul(weights, v)

    return derivatives(tf, attention, q, k, v)


@program()
def adjust_contrast(tf, np):
    image = tf.constant([[[0.1, 0.9], [0.4, 0.2]], [[0.7, 0.3], [0.6, 0.8]]])
    batch = tf.stack([image, 1.0 - image])
    return [
        tf.image.adjust_contrast(image, 2.0),
        tf.image.adjust_contrast(batch, 0.5),
        tf.image.adjust_contrast(image, tf.constant(0.0)),
        raises(lambda: tf.image.adjust_contrast(tf.ones([2]), 2.0)),
    ]
