"""Names of TensorFlow 1 that libraries for TensorFlow 2 use: sizes as objects, placeholders, scopes, old resizing."""

from conformance.probes import gradients, raises
from conformance.program import program


@program()
def dimensions(tf, np):
    size, unknown = tf.TensorShape([2, None]).dims
    dimension = tf.compat.v1.Dimension
    return [
        [repr(size), repr(unknown), str(size), str(unknown), size.value, unknown.value, int(size), bool(unknown)],
        [size == 2, size != 3, size == unknown, unknown == 3, size < 3, size >= dimension(2), unknown < 1, size == "a"],
        [repr(value) for value in (size + 1, 7 - dimension(3), size * unknown, dimension(7) // 2, 7 % dimension(4))],
        [repr(size.merge_with(unknown)), repr(unknown.merge_with(3)), size.is_compatible_with(3)],
        [raises(lambda: size.merge_with(3)), raises(lambda: dimension(-1)), raises(lambda: dimension("a"))],
        [raises(lambda: size / 2), raises(lambda: 2 / size), raises(lambda: size * 1.5), raises(lambda: hash(size))],
        [raises(lambda: int(unknown)), raises(lambda: size.assert_is_compatible_with(4)), tf.TensorShape(None).dims],
        [tf.TensorShape([size, unknown]), tf.zeros([size, 3]).shape, tf.constant(size), [5, 6, 7][size]],
        [tf.reshape(tf.range(6), [dimension(3), size]), tf.ones(tf.TensorShape([2, 1]).dims)],
    ]


@program()
def values_of_dimensions(tf, np):
    shape = tf.TensorShape([2, None])
    return [
        [tf.compat.dimension_value(value) for value in (3, None, tf.compat.v1.Dimension(4), shape[0], shape.dims[1])],
        [repr(tf.compat.dimension_at_index(shape, index)) for index in (0, 1, -1)],
        repr(tf.compat.dimension_at_index(tf.TensorShape(None), 5)),
        raises(lambda: tf.compat.dimension_at_index(shape, 4)),
    ]


@program()
def tensors_sparse_tensors_and_placeholders(tf, np):
    v1 = tf.compat.v1
    sparse = tf.sparse.from_dense([1.0, 0.0])
    converted = v1.convert_to_tensor_or_sparse_tensor(v1.SparseTensorValue([[0]], [1.0], [2]))
    return [
        v1.convert_to_tensor_or_sparse_tensor([1, 2], tf.float32),
        v1.convert_to_tensor_or_sparse_tensor(sparse) is sparse,
        tf.sparse.to_dense(converted),
        raises(lambda: v1.convert_to_tensor_or_sparse_tensor(sparse, tf.int32)),
        [v1.placeholder_with_default([1.0, 2.0], shape) for shape in ([2], [None], None)],
    ]


@program()
def seeds_by_the_old_name(tf, np):
    drawn = []
    for seed in (3, 3, 4):
        tf.compat.v1.set_random_seed(seed)
        drawn.append(tf.random.uniform([2]))
    return drawn


@program()
def scopes_with_a_default_name(tf, np):
    def entered(*args, **kwargs):
        with tf.compat.v1.name_scope(*args, **kwargs) as scope:
            return scope

    with tf.compat.v1.name_scope("outer"):
        inside = [entered("a"), entered(None, "b"), entered(None), entered("c/")]
        variable = tf.Variable(1.0)
    return [
        [entered("a"), entered(None, default_name="b"), entered("a", "b", [tf.constant(1.0)]), entered(None)],
        inside,
        [variable.name, tf.compat.v1.name_scope("a").name, raises(lambda: tf.compat.v1.name_scope(3))],
    ]


@program(rtol=2e-6)  # TensorFlow's kernels take the products of a pixel in another order
def images_resized_as_before(tf, np):
    resize, method = tf.compat.v1.image.resize, tf.compat.v1.image.ResizeMethod
    images = np.sin(np.arange(24.0, dtype=np.float32)).reshape(2, 3, 4, 1)
    methods = [method.BILINEAR, method.NEAREST_NEIGHBOR, method.BICUBIC, method.AREA]
    corners = (False, True)
    return [
        [resize(images, [5, 7], kind, align) for kind in methods for align in corners],
        [resize(images, [2, 1], kind, align) for kind in methods for align in corners],
        [resize(images[0], [6, 4], kind) for kind in ("bilinear", "nearest", "bicubic", "area")],
        [gradients(tf, lambda x, kind=kind: resize(x, [4, 3], kind), images[0]) for kind in methods[:3]],
        tf.compat.v1.image.resize_images(images, [6, 9], preserve_aspect_ratio=True).shape,
        [resize(tf.ones([3, 4, 1], tf.uint8), size, kind).dtype for size in ([3, 4], [3, 8]) for kind in methods],
        [raises(lambda: resize(images, [5, 7], 7)), raises(lambda: resize(images, [5, 7], "lanczos3"))],
        [raises(lambda: resize(images[0, 0], [5, 7])), raises(lambda: resize(images, [5]))],
    ]


@program()
def a_part_of_a_program_with_a_name(tf, np):
    with tf.profiler.experimental.Trace("step", step_num=1) as trace:
        trace.set_metadata(loss=1.0)
        y = tf.square(3.0)
    like = tf.types.experimental.TensorLike
    values = (1, 1.0, "a", [1], np.ones(2), np.float32(1), y, tf.Variable(1.0), {}, None)
    return [y, [isinstance(value, like) for value in values]]
