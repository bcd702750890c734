"""tf.summary: what is in the event files, and when nothing is written."""

import io
import logging
import sys
import wave

import numpy as np
import PIL.Image
import pytest
from event_files import scalars, summaries

import prepared
import teletape as tf


@pytest.fixture
def writer(tmp_path):
    writer = tf.summary.create_file_writer(tmp_path)
    yield writer
    writer.close()


def test_scalars_have_their_tags_steps_and_values(writer, tmp_path):
    with writer.as_default():
        for step in range(3):
            assert tf.summary.scalar("loss", tf.constant(0.5) * step, step=step)
        with tf.name_scope("scope"):
            tf.summary.scalar("x", np.float64(2.0), step=tf.Variable(7, dtype=tf.int64))
    assert scalars(tmp_path) == [("loss", 0, 0.0), ("loss", 1, 0.5), ("loss", 2, 1.0), ("scope/x", 7, 2.0)]


def test_a_summary_keeps_the_value_of_its_moment(writer, tmp_path):
    v = tf.Variable(1.0)
    with writer.as_default(step=3):
        tf.summary.scalar("v", v)
        v.assign(5.0)
        tf.summary.scalar("v", v)
    assert scalars(tmp_path) == [("v", 3, 1.0), ("v", 3, 5.0)]


def test_a_function_writes_one_summary_a_call(writer, tmp_path):
    @tf.function
    def step(x, number):
        tf.summary.scalar("sum", tf.reduce_sum(x), step=number)
        return x * 2.0

    with writer.as_default():
        for number in (1, 2):
            step(tf.ones([2]) * float(number), tf.constant(number, tf.int64))
    assert scalars(tmp_path) == [("sum", 1, 2.0), ("sum", 2, 4.0)]


def test_without_a_writer_or_against_a_condition_nothing_is_written(writer, tmp_path):
    assert not tf.summary.scalar("loss", 1.0)  # no step is needed either
    assert not tf.summary.should_record_summaries()
    with writer.as_default():
        with tf.summary.record_if(False):
            assert not tf.summary.should_record_summaries()
            assert not tf.summary.scalar("loss", 1.0, step=1)
        with tf.summary.record_if(lambda: tf.constant(True)):
            assert tf.summary.scalar("loss", 2.0, step=1)
        with tf.summary.create_noop_writer().as_default():
            tf.summary.scalar("loss", 3.0, step=1)
    assert scalars(tmp_path) == [("loss", 1, 2.0)]


def test_the_default_step_is_that_of_experimental_set_step(writer, tmp_path):
    with writer.as_default():
        with pytest.raises(ValueError, match=r"No step set.*tf\.summary\.experimental\.set_step\(\)"):
            tf.summary.scalar("loss", 1.0)
        tf.summary.experimental.set_step(11)
        try:
            tf.summary.scalar("loss", 1.0)
            assert tf.summary.experimental.get_step() == 11
        finally:
            tf.summary.experimental.set_step(None)
    assert scalars(tmp_path) == [("loss", 11, 1.0)]


def test_images_are_pngs(writer, tmp_path):
    gray = np.linspace(0.0, 1.0, 24, dtype=np.float32).reshape(2, 3, 4, 1)
    with writer.as_default(step=1):
        tf.summary.image("gray", gray)
        tf.summary.image("color", np.full([5, 2, 2, 3], 200, np.uint8), max_outputs=2)
    images = {
        value.tag: PIL.Image.open(io.BytesIO(value.image.encoded_image_string)) for _, value in summaries(tmp_path)
    }
    assert sorted(images) == ["color/0", "color/1", "gray/0", "gray/1"]
    np.testing.assert_array_equal(np.asarray(images["color/1"]), np.full([2, 2, 3], 200, np.uint8))
    assert np.asarray(images["gray/1"]).max() == 255


def test_histograms_texts_sounds_and_tensors(writer, tmp_path):
    samples = np.sin(np.arange(80.0)).reshape(1, 80, 1)
    with writer.as_default(step=2):
        tf.summary.histogram("weights", tf.constant([1.0, 2.0, 2.0, 4.0]), buckets=3)
        tf.summary.text("notes", ["first", "second"])
        tf.summary.audio("tone", samples, 8000)
        tf.summary.write("raw", tf.constant([1, 2], tf.int64))
        tf.summary.write("words", "text")
    histogram, text, audio, raw, words = (value for _, value in summaries(tmp_path))
    assert (histogram.histo.num, histogram.histo.sum) == (4, 9.0)
    assert text.tensor.string_val == [b"first\n\nsecond"]
    with wave.open(io.BytesIO(audio.audio.encoded_audio_string)) as sound:
        assert (sound.getframerate(), sound.getnframes()) == (8000, 80)
    assert np.frombuffer(raw.tensor.tensor_content, np.int64).tolist() == [1, 2]
    assert words.tensor.string_val == [b"text"]


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda: tf.summary.scalar("s", [1.0, 2.0], step=1), "its rank must be 0, found 1"),
        (lambda: tf.summary.image("i", tf.zeros([2, 2, 3]), step=1), "its rank must be 4, found 3"),
        (lambda: tf.summary.audio("a", tf.zeros([2]), 8000, step=1), "its rank must be 3, found 1"),
    ],
)
def test_data_of_another_rank_is_refused_at_its_line(writer, write, words):
    with writer.as_default(), pytest.raises(tf.errors.InvalidArgumentError, match=words):
        write()


def test_a_closed_writer_says_so(writer):
    writer.close()
    with pytest.raises(RuntimeError, match="already closed"), writer.as_default():
        pass


def test_two_writers_of_one_folder_have_files_of_their_own(tmp_path):
    for name in ("a", "b"):
        with tf.summary.create_file_writer(tmp_path).as_default(step=1):
            tf.summary.scalar(name, 1.0)
    assert sorted(tag for tag, _, _ in scalars(tmp_path)) == ["a", "b"]


def test_what_waits_is_written_when_the_program_ends(tmp_path):
    program = f"""
import teletape as tf
tf.summary.create_file_writer({str(tmp_path)!r}).set_as_default(step=4)
tf.summary.scalar("last", 8.0)
"""
    assert prepared.run([sys.executable, "-P", "-c", program]).returncode == 0
    assert scalars(tmp_path) == [("last", 4, 8.0)]


def test_without_tensorboardx_the_message_says_what_to_install(monkeypatch, tmp_path):
    for name in [name for name in sys.modules if name.startswith("tensorboardX")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    monkeypatch.setitem(sys.modules, "tensorboardX.event_file_writer", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'teletape\[summary\]'"):
        tf.summary.create_file_writer(tmp_path)


def test_traces_of_graphs_say_what_there_is_instead(caplog):
    with caplog.at_level(logging.WARNING):
        tf.summary.trace_on(graph=True)
        tf.summary.trace_export("graph", step=0)
    assert "records nothing in Teletape" in caplog.text
    with pytest.raises(NotImplementedError, match=r"no tf\.Graph"):
        tf.summary.graph(None)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of Keras's variables
def test_the_callback_of_keras_writes_its_files(tmp_path):
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    board = tf.keras.callbacks.TensorBoard(tmp_path, histogram_freq=1)
    model.fit(np.ones((8, 2)), np.ones((8, 1)), epochs=2, verbose=0, callbacks=[board])
    tags = {value.tag for _, value in summaries(tmp_path / "train")}
    assert {"epoch_loss", "epoch_learning_rate", "keras"} <= tags
    assert any("kernel" in tag for tag in tags)
