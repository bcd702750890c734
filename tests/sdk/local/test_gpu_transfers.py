"""What a training step copies between host and device, counted on the substitute for CuPy."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import substitute

import teletape as tf
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape_engine.arrays.gpu import COPY_BYTES

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(32, 8)).astype(np.float32)
LABELS = RANDOM.integers(0, 4, 32)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """What the substitute's device does, on which the session is."""
    state = substitute.installed(monkeypatch)
    before = use(LocalSession("gpu"))
    yield state
    use(before)


@pytest.fixture
def transfers(device: Any) -> list[Any]:
    """Copies so far."""
    copies: list[Any] = device.transfers
    return copies


def classifier(update: Callable[..., None]) -> Callable[..., Any]:
    """A training step of two layers that gives its loss."""
    shapes = (8, 16), (16,), (16, 4)
    variables = [tf.Variable(RANDOM.normal(size=shape).astype(np.float32)) for shape in shapes]

    def step(x: Any, labels: Any) -> Any:
        weights, bias, last = variables
        with tf.GradientTape() as tape:
            logits = tf.nn.relu(x @ weights + bias) @ last
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            loss = tf.reduce_mean(losses)
        update(tape.gradient(loss, variables), variables)
        return loss

    return step


def descend(gradients: Any, variables: Any) -> None:
    for gradient, variable in zip(gradients, variables, strict=True):
        variable.assign_sub(0.1 * gradient)


def with_adam() -> Callable[..., None]:
    optimizer = tf.keras.optimizers.Adam()
    return lambda gradients, variables: optimizer.apply_gradients(zip(gradients, variables, strict=True))


@pytest.mark.parametrize("optimizer", [lambda: descend, with_adam], ids=["descent", "Adam"])
@pytest.mark.parametrize("as_function", [False, True])
def test_a_step_copies_its_batch_up_and_its_loss_down(
    device: Any, optimizer: Callable[[], Any], as_function: bool
) -> None:
    step = classifier(optimizer())
    step = tf.function(step) if as_function else step
    for _ in range(5):
        device.transfers.clear()
        device.synchronisations.clear()
        loss = float(step(tf.constant(X), tf.constant(LABELS)))
        assert np.isfinite(loss)
    checks = ["down"] if as_function else []  # a plan checks the labels on the device, whatever the host knows of them
    assert [direction for direction, _ in device.transfers] == ["up", "up", *checks, "down"]
    assert device.synchronisations == []  # the copy down is all that the host waits for


def test_labels_of_the_device_itself_are_waited_for(transfers: list[Any]) -> None:
    """The host cannot know them; labels from the host stay known when they are cast, reshaped and sliced."""
    logits = tf.constant(X)
    known = tf.reshape(tf.cast(tf.constant(LABELS), tf.int32), [4, 8])[1]
    transfers.clear()
    tf.nn.sparse_softmax_cross_entropy_with_logits(labels=known, logits=logits[:8])
    assert transfers == []
    both = tf.constant([[7, 0], [7, 1]])  # bounds that are wider than those of its second column
    transfers.clear()
    tf.nn.sparse_softmax_cross_entropy_with_logits(labels=both[:, 1], logits=logits[:2, :4])
    assert transfers == [("down", "item")]
    transfers.clear()
    chosen = tf.argmax(logits, axis=1)
    tf.nn.sparse_softmax_cross_entropy_with_logits(labels=chosen, logits=logits)
    assert transfers == [("down", "item")]


def test_labels_out_of_range_are_refused(transfers: list[Any]) -> None:
    logits, labels = tf.constant(X), tf.constant(np.where(LABELS == 3, 9, LABELS))
    with pytest.raises(tf.errors.InvalidArgumentError, match="valid range"):
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)


def test_bounds_do_not_outlive_a_change_of_the_array(transfers: list[Any]) -> None:
    variable = tf.Variable([0, 1, 2])
    variable[1].assign(7)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"7 is not in \[0, 3\)"):
        tf.gather(tf.constant([1.0, 2.0, 3.0]), variable)


@pytest.mark.parametrize("elements", [1 << 18, (1 << 20) + 3, 5 << 20])
def test_large_arrays_are_copied_in_pieces(transfers: list[Any], elements: int) -> None:
    """The substitute copies a piece when it is waited for: what is read too early is not the array's."""
    array = np.arange(elements, dtype=np.float32)
    pieces = -(-array.nbytes // COPY_BYTES)
    transfers.clear()
    x = tf.constant(array)
    assert transfers == [("up", "memcpyAsync")] * pieces
    assert ((x + 1.0).numpy() == array + 1).all()
    assert transfers[pieces:] == [("down", "memcpyAsync")] * pieces
    turned = tf.transpose(tf.reshape(x[: 1 << 18], [512, 512]))
    assert (turned.numpy() == array[: 1 << 18].reshape(512, 512).T).all()


def test_copies_wait_for_the_work_before_them(transfers: list[Any]) -> None:
    """A copy up for the work that read the memory before, and one down for what computes its array."""
    x = tf.constant(np.ones(1 << 18, np.float32))
    copies = x.session._state.backend._copies  # type: ignore[attr-defined]  # of a session on a GPU
    assert copies._stream.waited == [copies._freed._event]
    y = x * 2.0
    y.numpy()
    assert [event.stream for event in copies._stream.waited[1:]] == [copies._computing]


@pytest.mark.parametrize("capturing", [False, True])
def test_memory_of_an_upload_is_used_again_after_the_work_that_read_it(transfers: list[Any], capturing: bool) -> None:
    """The end of the work is recorded before the memory is free; no stream can wait for what a capture records."""
    array = np.ones(1 << 18, np.float32)
    x = tf.constant(array)
    copies = x.session._state.backend._copies  # type: ignore[attr-defined]  # of a session on a GPU
    event = copies._freed._event
    assert event.stream is None
    y = x * 2.0
    if capturing:
        copies._computing.current = True
        copies._computing.begin_capture()
    del x
    if capturing:
        copies._computing.end_capture()
        copies._computing.current = False
    assert (event.stream is None) == capturing
    tf.constant(array)
    assert event.stream is copies._computing
    assert (y.numpy() == 2).all()
