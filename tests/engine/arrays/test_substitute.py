"""The substitute for CuPy is as strict as CuPy: each thing that a device refuses, or does otherwise than NumPy."""

import ctypes

import numpy as np
import pytest
import substitute


@pytest.fixture
def state(monkeypatch):
    return substitute.installed(monkeypatch)


@pytest.fixture
def xp(state):
    import cupy

    return cupy


HOST = np.ones(3, np.float32)

#: What CuPy refuses of an array `x` of three numbers, with the words of its error.
REFUSED = {
    "implicit conversion": (lambda xp, x: np.asarray(x), TypeError, "Implicit conversion"),
    "a host array as operand": (lambda xp, x: x + HOST, TypeError, "Unsupported type"),
    "a host array before it": (lambda xp, x: HOST * x, TypeError, "Unsupported type"),
    "a host array in a list": (lambda xp, x: xp.concatenate([x, HOST]), TypeError, "Unsupported type"),
    "a host array by name": (lambda xp, x: xp.take(x, indices=np.arange(2)), TypeError, "Unsupported type"),
    "a host array as place of the result": (lambda xp, x: xp.add(x, x, out=HOST.copy()), TypeError, "Unsupported type"),
    "a host array of a method": (lambda xp, x: x.dot(HOST), TypeError, "Unsupported type"),
    "a host array assigned": (lambda xp, x: x.__setitem__(slice(None), HOST), ValueError, "cannot be used for fill"),
    "strings": (lambda xp, x: xp.asarray(np.array([b"a"], object)), ValueError, "Unsupported dtype object"),
    "an empty array of objects": (lambda xp, x: xp.empty(2, object), ValueError, "Unsupported dtype object"),
    "where of a ufunc": (lambda xp, x: xp.add(x, x, where=x > 0), AssertionError, "takes no argument where"),
    "where of a reduction": (lambda xp, x: xp.sum(x, where=x > 0), AssertionError, "takes no argument where"),
    "a result of another dtype": (lambda xp, x: xp.left_shift(x, x), AssertionError, "does not compute float32"),
    "ufunc.at": (lambda xp, x: np.add.at(x, xp.asarray([0]), 1), TypeError, "at"),
    "bytes of another size of a view": (lambda xp, x: xp.stack([x, x])[:, :2].view(np.int16), ValueError, "C-contig"),
    "a name that it lacks": (lambda xp, x: xp.piecewise_of(x), AttributeError, "piecewise_of"),
    "a method that it lacks": (lambda xp, x: x.resize(2), AssertionError, "no method resize"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_refuses(name, xp):
    call, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        call(xp, xp.asarray(HOST))


def test_additions_at_rows_take_the_dtypes_of_atomics(xp):
    ids = xp.asarray([0, 0])
    for dtype in ("int8", "int16", "uint8", "complex64"):
        with pytest.raises(AssertionError, match=f"does not take {dtype}"):
            xp.add.at(xp.zeros(2, dtype), ids, xp.ones(2, dtype))
    total = xp.zeros(2, np.float32)
    xp.add.at(total, ids, xp.ones(2, np.float32))
    assert total.get().tolist() == [2, 0]


def test_reductions_give_arrays(xp):
    total = xp.sum(xp.asarray(HOST))
    assert isinstance(total, substitute.Array)
    assert total.shape == ()


def test_errors_of_the_device_are_not_seen(xp):
    """Indices wrap around, and singular matrices give nan: the engine has to look before."""
    x = xp.asarray(np.arange(3.0))
    assert x[xp.asarray([3, -4])].get().tolist() == [0, 2]
    assert xp.take(x, xp.asarray([5])).get().tolist() == [2]
    assert xp.stack([x, x])[:, xp.asarray([4])].get().tolist() == [[1], [1]]
    x[xp.asarray([4])] = 7
    assert x.get().tolist() == [0, 7, 2]
    assert np.isnan(xp.linalg.inv(xp.zeros((2, 2))).get()).all()


def test_transfers_and_synchronisations_are_counted(xp, state):
    x = xp.asarray(HOST)
    assert state.transfers == [("up", "asarray")]
    state.transfers.clear()
    x.get(), float(x[0]), x.tolist(), xp.nonzero(x), x.nonzero(), x[x > 0], x[np.array([0])]
    assert [way for way, _ in state.transfers] == ["down", "down", "down", "wait", "wait", "wait", "up"]
    assert state.synchronisations == []
    xp.cuda.runtime.deviceSynchronize()
    stream = xp.cuda.Stream(non_blocking=True)
    stream.record().synchronize()
    stream.synchronize()
    assert state.synchronisations == ["the device", "an event", "a stream"]


def test_a_copy_is_done_when_it_is_waited_for(xp, state):
    stream, source, target = xp.cuda.Stream(non_blocking=True), np.ones(4, np.uint8), np.zeros(4, np.uint8)
    addresses = (target.ctypes.data, source.ctypes.data)
    xp.cuda.runtime.memcpyAsync(*addresses, 4, xp.cuda.runtime.memcpyHostToDevice, stream.ptr)
    assert ctypes.string_at(addresses[0], 4) == bytes(4)
    stream.synchronize()
    assert target.tolist() == [1] * 4


def test_nothing_is_allocated_while_a_stream_captures(xp):
    x, stream = xp.asarray(HOST), xp.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        for call in (lambda: x + 1, lambda: xp.zeros(2), x.get, lambda: xp.asarray(HOST)):
            with pytest.raises(substitute.CaptureError, match="while a stream captures"):
                call()
        stream.end_capture()
