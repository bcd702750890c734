"""Convolution and pooling against loops that a reader can check; the geometry of windows; refusals."""

import itertools

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine.arrays import kernels
from teletape_engine.catalogue.binding import bind
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.convolution import patches, pool
from teletape_engine.ops.convolution.windows import windows
from teletape_engine.spec import DTYPES, Spec, finfo


@pytest.fixture(autouse=True, scope="module", params=["c", "numpy"])
def tier(request):
    """Every test runs with the kernels in C, and without them."""
    if request.param == "c" and kernels.LIBRARY_LOADED is None:
        pytest.skip("libkernels.so.1 is not built: no C compiler")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "numpy":
            patch.setattr(kernels, "LIBRARY_LOADED", None)
        yield request.param


def spec(name, *arrays, **attrs):
    op = CATALOGUE[name]
    return bind(op, tuple(Spec.of(array.shape, array.dtype) for array in arrays), op.attrs(attrs)).spec


@st.composite
def sliding(draw):
    pair = st.tuples(st.integers(1, 3), st.integers(1, 3))
    images = (draw(st.integers(1, 2)), draw(st.integers(1, 6)), draw(st.integers(1, 6)))
    padding = draw(st.sampled_from(["SAME", "VALID", "EXPLICIT"]))
    border = st.tuples(st.integers(0, 2), st.integers(0, 2))
    paddings = draw(st.tuples(border, border)) if padding == "EXPLICIT" else None
    how = {"strides": draw(pair), "padding": padding, "paddings": paddings}
    size, dilations = draw(pair), draw(pair)
    try:
        windows(images[1:], size, **how, dilations=dilations)
        windows(images[1:], size, **how, dilations=(1, 1))
    except InvalidArgumentError:  # images much smaller than the window
        reject()
    return images, size, how, dilations


def seen(at, i, j):
    """For each element of the window at (i, j) its place in the image, or None on the border."""
    for k, l in itertools.product(*map(range, at.size)):  # noqa: E741  # rows and columns of the window
        row = i * at.strides[0] + k * at.dilations[0] - at.paddings[0][0]
        column = j * at.strides[1] + l * at.dilations[1] - at.paddings[1][0]
        inside = 0 <= row < at.images[0] and 0 <= column < at.images[1]
        yield k, l, (row, column) if inside else None


@settings(max_examples=120)
@given(sliding(), st.integers(1, 2), st.integers(1, 2), st.integers(1, 2))
def test_convolution_is_its_definition(case, groups, depth, out):
    (n, height, width), size, how, dilations = case
    random = np.random.default_rng(0)
    x = random.normal(size=(n, height, width, groups * depth))
    filters = random.normal(size=(*size, depth, groups * out))
    at = windows((height, width), size, **how, dilations=dilations)
    expected = np.zeros((n, *at.counts, groups * out))
    for i, j in itertools.product(*map(range, at.counts)):
        for k, l, place in seen(at, i, j):  # noqa: E741
            if place:
                for g in range(groups):
                    channels, value = slice(g * depth, (g + 1) * depth), slice(g * out, (g + 1) * out)
                    expected[:, i, j, value] += x[:, *place, channels] @ filters[k, l, :, value]
    result = CATALOGUE["conv2d"](x, filters, **how, dilations=dilations)
    assert spec("conv2d", x, filters, **how, dilations=dilations).shape == result.shape
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)


@settings(max_examples=120)
@given(sliding(), st.integers(1, 2), st.integers(1, 2), st.sampled_from([0, 100]))
def test_the_transposes_of_convolution_are_its_transposes(case, groups, depth, few):
    (n, height, width), size, how, dilations = case
    how["dilations"] = dilations
    random = np.random.default_rng(0)
    x = random.normal(size=(n, height, width, groups * depth))
    filters = random.normal(size=(*size, depth, groups * 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patches, "_FEW", few)  # channels: what few and what many take
        y = CATALOGUE["conv2d"](x, filters, **how)
        ct = random.normal(size=y.shape)
        to_images = CATALOGUE["conv2d_backprop_input"](ct, filters, shape=x.shape, **how)
        to_filters = CATALOGUE["conv2d_backprop_filter"](x, ct, shape=filters.shape, **how)
    product = (ct * y).sum()
    near = {"rtol": 1e-11, "atol": 1e-11}
    np.testing.assert_allclose((x * to_images).sum(), product, **near)
    np.testing.assert_allclose((filters * to_filters).sum(), product, **near)
    direction = random.normal(size=x.shape)
    moved = CATALOGUE["conv2d"](direction, filters, **how)
    np.testing.assert_allclose((direction * to_images).sum(), (ct * moved).sum(), **near)


def test_the_gradient_of_images_of_many_channels_is_a_convolution():
    at = windows((8, 9), (3, 2), (1, 1), "SAME", None, (1, 1))
    assert patches.transposed(at, 5) is not None
    assert patches.transposed(at, 4) is None
    assert patches.transposed(windows((8, 9), (3, 2), (2, 1), "SAME", None, (1, 1)), 5) is None
    assert patches.transposed(windows((8, 9), (8, 9), (1, 1), "VALID", None, (1, 1)), 5) is None


@settings(max_examples=120)
@given(sliding())
def test_pooling_is_its_definition(case):
    (n, height, width), size, how, _ = case
    x = np.random.default_rng(0).integers(-3, 3, (n, height, width, 2)).astype(float)  # with ties
    at = windows((height, width), size, **how, dilations=(1, 1))
    largest, mean = np.full((2, n, *at.counts, 2), np.finfo(float).min)
    back, ct = np.zeros(x.shape), np.random.default_rng(1).normal(size=(n, *at.counts, 2))
    for i, j in itertools.product(*map(range, at.counts)):
        places = [place for _, _, place in seen(at, i, j) if place]
        window = np.stack([x[:, *place] for place in places]) if places else np.zeros((0, n, 2))
        mean[:, i, j] = window.sum(0) / max(len(places), 1)
        if places:
            largest[:, i, j] = window.max(0)
            for at_n, channel in np.ndindex(n, 2):
                first = places[int(window[:, at_n, channel].argmax())]
                back[at_n, *first, channel] += ct[at_n, i, j, channel]
    how["ksize"] = size
    np.testing.assert_array_equal(CATALOGUE["max_pool"](x, **how), largest)
    np.testing.assert_allclose(CATALOGUE["avg_pool"](x, **how), mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(CATALOGUE["max_pool_backprop"](ct, x, **how), back, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int64"])
@pytest.mark.parametrize(("size", "strides"), [((2, 2), (2, 2)), ((2, 3), (1, 2)), ((1, 2), (3, 3))])
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
def test_the_first_of_the_largest_has_the_gradient(dtype, size, strides, padding):
    dtype = DTYPES[dtype]
    number = np.iinfo if dtype.kind in "iu" else finfo
    lowest = number(dtype).min
    values = [lowest, 0, 1, 1, 2] if dtype.kind in "iu" else [lowest, 0.0, -0.0, 1.0, np.inf, -np.inf, np.nan]
    random = np.random.default_rng(0)
    x = random.choice(np.array(values).astype(dtype), size=(2, 7, 6, 3))
    at = windows((7, 6), size, strides, padding, None, (1, 1))
    ct = random.integers(1, 9, (2, *at.counts, 3)).astype(dtype)
    t = random.integers(1, 9, x.shape).astype(dtype)
    back, picked = np.zeros_like(x), np.zeros_like(ct)
    for n, i, j, channel in np.ndindex(ct.shape):
        best, first = lowest, None
        for _, _, place in seen(at, i, j):
            if place and x[n, *place, channel] > best:
                best, first = x[n, *place, channel], place
        if first:  # none of numbers that are all the lowest, or none
            back[n, *first, channel] += ct[n, i, j, channel]
            picked[n, i, j, channel] = t[n, *first, channel]
    how = {"ksize": size, "strides": strides, "padding": padding}
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(CATALOGUE["max_pool_backprop"](ct, x, **how), back)
        np.testing.assert_array_equal(CATALOGUE["max_pool_pick"](t, x, **how), picked)


@pytest.mark.parametrize("buffer", [1, 400, 5000])
def test_patches_in_parts_give_what_they_give_at_once(buffer, monkeypatch):
    random = np.random.default_rng(0)
    x, filters = random.normal(size=(3, 7, 6, 2)), random.normal(size=(3, 2, 2, 4))
    whole = CATALOGUE["conv2d"](x, filters)
    back = CATALOGUE["conv2d_backprop_filter"](x, whole, shape=filters.shape)
    monkeypatch.setattr(patches, "_BUFFER", buffer)
    monkeypatch.setattr(patches, "_FEWEST", 1)
    np.testing.assert_allclose(CATALOGUE["conv2d"](x, filters), whole, rtol=1e-12)
    np.testing.assert_allclose(CATALOGUE["conv2d_backprop_filter"](x, whole, shape=filters.shape), back, rtol=1e-12)


def test_pooling_image_by_image_is_the_same(monkeypatch):
    random = np.random.default_rng(0)
    x, ct = random.integers(0, 3, (5, 6, 7, 2)).astype("f4"), random.normal(size=(5, 3, 3, 2)).astype("f4")
    how = {"ksize": (2, 2), "strides": (2, 2)}
    largest, at_once = CATALOGUE["max_pool"](x, **how), CATALOGUE["max_pool_backprop"](ct, x, **how)
    monkeypatch.setattr(pool, "_CACHED", 2 * x[0].nbytes)
    monkeypatch.setattr(pool, "_LARGE", 0)
    np.testing.assert_array_equal(CATALOGUE["max_pool"](x, **how), largest)
    np.testing.assert_array_equal(CATALOGUE["max_pool_backprop"](ct, x, **how), at_once)


def test_same_padding_puts_the_odd_element_last():
    at = windows((5, 4), (2, 3), (2, 1), "SAME", None, (1, 1))
    assert at.counts == (3, 4)
    assert at.paddings == ((0, 1), (1, 1))


def test_what_sees_the_border_alone_is_left_out():
    at = windows((4, 3), (5000, 4000), (1, 2), "SAME", None, (1, 1))
    assert len(list(at.offsets())) <= 8 * 6
    x = np.arange(12.0).reshape(1, 4, 3, 1)
    result = CATALOGUE["max_pool"](x, ksize=(5000, 1), strides=(1, 1), padding="SAME")
    np.testing.assert_array_equal(result[0, :, :, 0], np.tile([9.0, 10.0, 11.0], (4, 1)))


@pytest.mark.parametrize("bfloat16", [False, True])
def test_sixteen_bits_are_summed_in_thirty_two(bfloat16):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = ml_dtypes.bfloat16 if bfloat16 else np.float16
    x, filters = np.ones((1, 64, 64, 1), dtype), np.ones((64, 64, 1, 1), dtype)
    assert float(CATALOGUE["conv2d"](x, filters)[0, 0, 0, 0]) == 4096
    assert float(CATALOGUE["avg_pool"](x, ksize=(64, 64), strides=(1, 1))[0, 0, 0, 0]) == 1
    assert float(CATALOGUE["max_pool"](-x, ksize=(2, 2), strides=(2, 2)).max()) == -1


GOOD = {"strides": (1, 1)}


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"strides": (1,)}, "strides must be two lengths"),
        ({"strides": (0, 1)}, "strides must be larger than 0"),
        ({"dilations": (1, -1)}, "dilations must be larger than 0"),
        ({"padding": "same"}, '"SAME", "VALID", "EXPLICIT"'),
        ({"padding": "EXPLICIT"}, "paddings go with padding EXPLICIT"),
        ({"padding": "SAME", "paddings": ((0, 0), (0, 0))}, "paddings go with padding EXPLICIT"),
        ({"padding": "EXPLICIT", "paddings": ((0, 0),)}, "two pairs"),
        ({"padding": "EXPLICIT", "paddings": ((0, -1), (0, 0))}, "nonnegative"),
    ],
)
def test_a_geometry_refused(attrs, message):
    x, filters = np.ones((1, 4, 4, 1)), np.ones((2, 2, 1, 1))
    with pytest.raises(InvalidArgumentError, match=message):
        spec("conv2d", x, filters, **attrs)


def test_gradients_of_other_shapes_are_refused():
    x, filters, grad = np.ones((1, 4, 4, 1)), np.ones((2, 2, 1, 1)), np.ones((1, 2, 2, 1))
    with pytest.raises(InvalidArgumentError, match=r"gives \[1,3,3,1\], found \[1,2,2,1\]"):
        spec("conv2d_backprop_input", grad, filters, shape=x.shape)
    with pytest.raises(InvalidArgumentError, match=r"gives \[1,3,3,1\], found \[1,2,2,1\]"):
        spec("conv2d_backprop_filter", x, grad, shape=filters.shape)
    with pytest.raises(InvalidArgumentError, match=r"gives \[1,2,2,1\], found \[1,4,4,1\]"):
        spec("max_pool_backprop", x, x, ksize=(2, 2), strides=(2, 2))
    with pytest.raises(InvalidArgumentError, match="one shape"):
        spec("max_pool_pick", grad, x, ksize=(2, 2), strides=(2, 2))
    with pytest.raises(InvalidArgumentError, match=r"gives \[1,2,2,1\], found \[1,4,4,1\]"):
        spec("avg_pool_backprop", x, shape=x.shape, ksize=(2, 2), strides=(2, 2))
