"""Architectures of tf.keras.applications without downloaded weights: outputs, gradients, parts, training on top."""

from conformance.keras_models import classes, history, known, numbers
from conformance.program import program


def mobile(tf, np, name="MobileNet", **options):
    build = getattr(tf.keras.applications, name)
    options = {"include_top": False, "pooling": "avg", "alpha": 0.25 if name == "MobileNet" else 0.35} | options
    return known(np, build(input_shape=(32, 32, 3), weights=None, **options))


@program(atol=1e-4)
def outputs_and_the_gradient_of_the_image(tf, np):
    model = mobile(tf, np)
    image = tf.Variable(numbers(np, 2, 32, 32, 3))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.tanh(model(image, training=False)))
    return [loss, tape.gradient(loss, image)[:, ::8, ::8], len(model.layers), model.count_params()]


@program(atol=1e-4)
def gradients_of_the_weights_in_training(tf, np):
    model = mobile(tf, np, "MobileNetV2", include_top=True, pooling=None, classes=4, classifier_activation=None)
    x, y = numbers(np, 4, 32, 32, 3), np.array([0, 3, 1, 2])
    with tf.GradientTape() as tape:
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    moving = [v for v in model.non_trainable_variables if v.name == "moving_mean"]
    return [loss, [tf.norm(gradient) for gradient in gradients[-6:]], gradients[-1], len(gradients), moving[0].value]


@program(atol=1e-4)
def features_between_the_layers(tf, np):
    model = mobile(tf, np)
    names = [layer.name for layer in model.layers if layer.name.endswith("relu")][4:7]
    extractor = tf.keras.Model(model.inputs, [model.get_layer(name).output for name in names])
    features = extractor(numbers(np, 1, 32, 32, 3))
    grams = [tf.einsum("bijc,bijd->bcd", each, each) / float(each.shape[1] * each.shape[2]) for each in features]
    return [names, [list(each.shape) for each in features], grams]


@program(atol=1e-4)
def training_on_top_of_a_frozen_base(tf, np):
    base = mobile(tf, np)
    base.trainable = False
    inputs = tf.keras.Input((32, 32, 3))
    outputs = tf.keras.layers.Dense(2)(tf.keras.layers.Dropout(0.0)(base(inputs, training=False)))
    model = tf.keras.Model(inputs, outputs)
    known(np, model.layers[-1])
    model.compile(
        tf.keras.optimizers.Adam(0.01),
        tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    _, y = classes(np)
    record = model.fit(numbers(np, 16, 32, 32, 3), y[:16], batch_size=8, epochs=2, shuffle=False, verbose=0)
    return [history(record), len(model.trainable_variables), model.layers[-1].get_weights()]


@program()
def images_are_prepared_as_each_network_wants_them(tf, np):
    image = np.random.default_rng(3).integers(0, 256, (1, 4, 4, 3)).astype("float32")
    names = "vgg16 vgg19 resnet50 resnet_v2 inception_v3 xception mobilenet mobilenet_v2 densenet nasnet efficientnet"
    applications = tf.keras.applications
    return {
        name: [getattr(applications, name).preprocess_input(image.copy()), getattr(applications, name).__name__[-8:]]
        for name in names.split()
    } | {"tensor": applications.vgg16.preprocess_input(tf.constant(image))}
