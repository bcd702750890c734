"""tf.experimental.numpy: dtypes as NumPy promotes them, values, shapes, gradients; NumPy's methods on tensors."""

from conformance.probes import raises
from conformance.program import program


def arrays(np):
    return {
        "floats": np.arange(6.0).reshape(2, 3) - 2.3,
        "singles": np.array([1.5, 2.5], np.float32),
        "python": 2.5,
        "complex": np.array([1 + 2j, 2 - 3j]),
    }


@program()
def functions_of_each_element(tf, np):
    tnp = tf.experimental.numpy
    names = (
        "arccos arcsin arctan arcsinh cos cosh expm1 log1p sin tan tanh absolute negative square reciprocal cbrt sinc"
    )
    values = {name: x for name, x in arrays(np).items() if name != "complex"}
    results = {
        name: {
            kind: getattr(tnp, name)(np.clip(x, -0.9, 0.9) if name[:3] == "arc" else x) for kind, x in values.items()
        }
        for name in names.split()
    }
    z = arrays(np)["complex"]
    return [
        results,
        [getattr(tnp, name)(z) for name in ("real", "imag", "conjugate", "absolute", "square", "exp", "sign")],
    ]


@program()
def functions_of_two_arrays(tf, np):
    tnp = tf.experimental.numpy
    whole, short = np.arange(6).reshape(2, 3) + 1, np.array([1, 2], np.int8)
    floats, singles = arrays(np)["floats"], arrays(np)["singles"]
    flags = np.array([True, False])
    pairs = [(floats, whole), (whole, 2.5), (singles, 3), (singles, np.array([1, 2])), (short, short), (3, 2)]
    names = "add subtract multiply true_divide floor_divide remainder power maximum minimum equal greater less_equal"
    logic = "logical_and logical_or logical_xor add multiply maximum minimum equal"
    return [
        {name: [getattr(tnp, name)(x, y) for x, y in pairs] for name in names.split()},
        {name: getattr(tnp, name)(flags, np.array([True, True])) for name in logic.split()},
        [tnp.bitwise_and(6, 3), tnp.bitwise_or(whole, 1), tnp.gcd([4, 6], [6, 9]), tnp.lcm(4, 6)],
        [tnp.clip(whole, 2, 3), tnp.clip(floats, None, 0.0), tnp.heaviside(floats, 0.5)],
    ]


@program()
def reductions(tf, np):
    tnp = tf.experimental.numpy
    values = {
        "floats": arrays(np)["floats"],
        "whole": np.arange(6).reshape(2, 3),
        "int32": np.arange(4, dtype=np.int32).reshape(2, 2),
        "singles": np.array([[1.5, 2.5]], np.float32),
        "flags": np.array([[True, False]]),
    }
    names = "sum prod max min ptp mean std var all any argmax argmin count_nonzero".split()
    skipped = {("ptp", "flags")}
    return [
        {
            f"{name} {kind}": [getattr(tnp, name)(x), getattr(tnp, name)(x, axis=1)]
            for name in names
            for kind, x in values.items()
            if (name, kind) not in skipped
        },
        [tnp.cumsum(values["whole"]), tnp.cumsum(values["floats"], axis=1), tnp.cumprod(values["int32"], axis=0)],
        [tnp.average(values["floats"], axis=1, weights=[1.0, 2.0, 3.0]), tnp.sum(values["floats"], 0, keepdims=True)],
        [tnp.mean(values["whole"], dtype=np.float32), tnp.size(values["whole"])],
    ]


@program()
def shapes_and_places(tf, np):
    tnp = tf.experimental.numpy
    x, y = np.arange(6).reshape(2, 3), np.arange(6.0).reshape(2, 3) - 2.5
    return {
        "made": [tnp.array([1, 2]), tnp.array([1.0, 2]), tnp.zeros(3), tnp.ones([2, 2], dtype=int), tnp.full([2], 7)],
        "like": [tnp.zeros_like(x), tnp.full_like(x, 2.7), tnp.eye(2, 3, 1), tnp.identity(2), tnp.tri(3, k=-1)],
        "ranges": [tnp.arange(4), tnp.arange(1.0, 3, 0.5), tnp.arange(5, 1, -2), tnp.arange(3, dtype=np.float32)],
        "shaped": [tnp.reshape(x, -1), tnp.ravel(y), tnp.expand_dims(x, 0), tnp.transpose(x), tnp.moveaxis(x, 0, -1)],
        "joined": [tnp.concatenate([x, y]), tnp.stack([x, y], 1), tnp.vstack([[1, 2], [3, 4]]), tnp.hstack([[1], [3]])],
        "cut": [tnp.split(np.arange(6), 3), tnp.split(np.arange(6), [2, 3]), tnp.hsplit(x, 3)],
        "repeated": [tnp.tile([1, 2], (2, 2)), tnp.repeat(x, 2), tnp.pad(x, ((1, 0), (0, 2)), "constant")],
        "turned": [tnp.flip(x), tnp.fliplr(x), tnp.rot90(x), tnp.rot90(x, 3), tnp.roll(x, 1), tnp.roll(x, 1, 1)],
        "chosen": [tnp.where(x > 2, x, 0.5), tnp.take(x, [0, 9]), tnp.take(x, [1, -1], 1, mode="wrap"), tnp.nonzero(x)],
        "sorted": [tnp.sort(-y), tnp.sort(-y, 0), tnp.argsort(-y), tnp.diff([1, 4, 9, 16])],
        "diagonals": [
            tnp.diag([1, 2], 1),
            tnp.diag(x),
            tnp.diagflat([[1, 2]]),
            tnp.trace(y),
            tnp.tril(x),
            tnp.triu(y, 1),
        ],
        "products": [
            tnp.matmul(x, y.T),
            tnp.dot(x, y.T),
            tnp.inner(x, y),
            tnp.outer([1, 2], [3.0]),
            tnp.kron([1, 2], [1, 0]),
        ],
        "more products": [
            tnp.tensordot(x, y, [[0, 1], [0, 1]]),
            tnp.einsum("ij,kj->ik", x, y),
            tnp.cross([1, 2, 3], [4, 5, 6]),
        ],
        "asked": [
            bool(tnp.allclose([1.0], [1.0 + 1e-9])),
            bool(tnp.array_equal([1], [1, 2])),
            tnp.ndim(x),
            list(tnp.shape(x)),
        ],
        "refused": [raises(lambda: tnp.sort(x, kind="heapsort")), raises(lambda: tnp.clip(x, None, None))],
        "random": [
            tnp.random.rand(2, 3).dtype.name,
            tnp.random.randint(0, 5, [3]).dtype.name,
            list(tnp.random.randn(2).shape),
        ],
    }


@program()
def gradients_pass_through(tf, np):
    tnp = tf.experimental.numpy

    def gradient(function, x):
        x = tf.constant(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tnp.sum(function(x))
        return [y, tape.gradient(y, x)]

    y = np.arange(6.0).reshape(2, 3) / 3 - 0.9
    return [
        gradient(lambda x: tnp.sin(x) * x, y),
        gradient(lambda x: tnp.var(x, axis=1), y),
        gradient(lambda x: tnp.dot(x, tnp.transpose(x)), y),
        gradient(lambda x: tnp.where(x > 0, x**2, -x), y),
        gradient(lambda x: tnp.take(x, [1, 1]), y),
        gradient(lambda x: tnp.clip(x, -0.5, 0.5), y),
        gradient(lambda x: tnp.concatenate([x, tnp.tril(x)]), y),
    ]


@program(fresh=True)
def methods_of_numpy(tf, np):
    tnp = tf.experimental.numpy
    before = hasattr(tf.constant(1.0), "astype")
    tnp.experimental_enable_numpy_behavior()
    x = tf.reshape(tf.range(6.0), [2, 3])
    return [
        before,
        [x.T, x.reshape(3, 2), x.reshape([6]), x.ravel(), x.astype(np.int32), x.transpose(), x.transpose([1, 0])],
        [x.mean(axis=0), x.max(), x.min(1), x.clip(1.0, 3.0), x.flatten(), x.size, x.tolist()],
    ]
