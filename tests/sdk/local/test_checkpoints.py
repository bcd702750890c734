"""Files of checkpoints: what other programs read in them, what a damaged one says, and what stays after a failure."""

import json
import os

import numpy as np
import pytest
import safetensors.numpy

import teletape as tf
from teletape.tf.checkpoints import files


@pytest.fixture
def path(tmp_path):
    """A checkpoint of two variables."""
    checkpoint = tf.train.Checkpoint(w=tf.Variable([1.0, 2.0]), z=tf.Variable([1 + 2j], dtype=tf.complex128))
    return checkpoint.write(tmp_path / "weights")


def restored(path, initial):
    variable = tf.Variable(initial)
    tf.train.Checkpoint(w=variable).read(path)
    return variable.numpy()


def test_other_programs_read_the_values_as_safetensors(path):
    tensors = safetensors.numpy.load_file(path + ".safetensors")
    np.testing.assert_array_equal(tensors["w/.ATTRIBUTES/VARIABLE_VALUE"], np.float32([1, 2]))
    np.testing.assert_array_equal(tensors["z/.ATTRIBUTES/VARIABLE_VALUE"], [[1.0, 2.0]])  # pairs of float64


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "complex64", "complex128", "bool", "uint8", "int64"])
@pytest.mark.parametrize("shape", [(), (3,), (0, 2)])
def test_each_dtype_and_shape_comes_back(tmp_path, dtype, shape):
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    saved, target = tf.Variable(tf.cast(values, dtype)), tf.Variable(tf.cast(np.ones(shape), dtype))
    target.assign(tf.zeros_like(target))
    tf.train.Checkpoint(v=target).read(tf.train.Checkpoint(v=saved).write(tmp_path / "c")).assert_consumed()
    np.testing.assert_array_equal(target.numpy(), saved.numpy())
    assert target.numpy().dtype == saved.numpy().dtype


def test_a_path_with_a_large_array_is_mapped_and_not_read_twice(tmp_path):
    saved, target = tf.Variable(tf.ones([1 << 16])), tf.Variable(tf.zeros([1 << 16]))
    tf.train.Checkpoint(v=target).read(tf.train.Checkpoint(v=saved).write(tmp_path / "c"))
    target.assign_add(tf.ones([1 << 16]))  # the file is not written through the map
    assert tf.train.load_variable(str(tmp_path / "c"), "v/.ATTRIBUTES/VARIABLE_VALUE").max() == 1.0


@pytest.mark.parametrize(
    ("suffix", "content", "words"),
    [
        (".index", b"{", "is not the index of a checkpoint"),
        (".index", b'{"format": "other", "version": 1}', "it is a other of version 1"),
        (".index", json.dumps({"format": files.FORMAT, "version": 99}).encode(), "of version 99"),
        (".safetensors", b"short", "does not hold the values"),
        (".safetensors", b"\x02" + bytes(7) + b"{}", "does not hold the values"),
    ],
)
def test_a_damaged_file_says_what_is_wrong_with_it(path, suffix, content, words):
    with open(path + suffix, "wb") as file:
        file.write(content)
    with pytest.raises(tf.errors.DataLossError, match=words):
        restored(path, [0.0, 0.0])


def test_an_index_without_values_says_which_file_is_missing(path):
    os.unlink(path + ".safetensors")
    with pytest.raises(tf.errors.DataLossError, match=r"weights\.safetensors, which holds its values, is not"):
        restored(path, [0.0, 0.0])


def test_a_checkpoint_of_tensorflow_says_how_to_bring_its_weights(tmp_path):
    (tmp_path / "ckpt-1.index").write_bytes(b"\x00\x01binary")
    (tmp_path / "ckpt-1.data-00000-of-00001").write_bytes(b"")
    with pytest.raises(tf.errors.DataLossError, match=r"TensorFlow's own: .*save_weights"):
        restored(str(tmp_path / "ckpt-1"), [0.0])


def test_a_failed_write_leaves_the_old_checkpoint(path, monkeypatch):
    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space left"):
        tf.train.Checkpoint(w=tf.Variable([5.0, 5.0])).write(path)
    monkeypatch.undo()
    np.testing.assert_array_equal(restored(path, [0.0, 0.0]), [1.0, 2.0])
    assert sorted(os.listdir(os.path.dirname(path))) == ["weights.index", "weights.safetensors"]


def test_strings_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(tf.errors.TeletapeError, match="holds strings"):
        tf.train.Checkpoint(words=tf.Variable(["a"])).write(tmp_path / "c")
    assert os.listdir(tmp_path) == []


def test_one_object_below_two_names_is_saved_once(tmp_path):
    shared = tf.Variable(1.0)
    path = tf.train.Checkpoint(a=shared, b=[shared]).write(tmp_path / "c")
    assert len(tf.train.list_variables(path)) == 1
    a, b = tf.Variable(0.0), tf.Variable(0.0)
    status = tf.train.Checkpoint(a=a, b=[b]).read(path)
    assert a.numpy() == 1.0
    with pytest.raises(AssertionError, match="1 Python objects"):
        status.assert_existing_objects_matched()


def test_a_cycle_of_modules_ends(tmp_path):
    first, second = tf.Module(), tf.Module()
    first.other, second.other, second.w = second, first, tf.Variable(4.0)
    path = tf.train.Checkpoint(first).write(tmp_path / "c")
    second.w.assign(0.0)
    tf.train.Checkpoint(first).read(path).assert_consumed()
    assert second.w.numpy() == 4.0


def test_the_iterator_yields_each_new_checkpoint_and_ends(tmp_path):
    checkpoint = tf.train.Checkpoint(w=tf.Variable(1.0))
    checkpoint.save(tmp_path / "ckpt")
    checkpoints = tf.train.checkpoints_iterator(tmp_path, timeout=0.01)
    assert os.path.basename(next(checkpoints)) == "ckpt-1"
    checkpoint.save(tmp_path / "ckpt")
    assert [os.path.basename(path) for path in checkpoints] == ["ckpt-2"]


def test_saved_models_are_refused_with_what_to_use_instead(tmp_path):
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    with pytest.raises(tf.errors.UnimplementedError, match=r"a Sequential into 'm' .*: model\.save\('m\.keras'\)"):
        tf.saved_model.save(model, "m")
    with pytest.raises(tf.errors.UnimplementedError, match=r"a Module into .* Instead: .*tf\.train\.Checkpoint"):
        tf.saved_model.save(tf.Module(), tmp_path)
    with pytest.raises(tf.errors.UnimplementedError, match=r"Instead: make the model in Python"):
        tf.saved_model.load(tmp_path)
    assert not tf.saved_model.contains_saved_model(tmp_path)
    (tmp_path / "saved_model.pb").touch()
    assert tf.saved_model.contains_saved_model(tmp_path)


def test_an_iterator_goes_on_in_the_order_of_a_seed_and_after_a_look_ahead(tmp_path):
    def shuffled():
        return iter(tf.data.Dataset.range(20).shuffle(20, seed=3, reshuffle_each_iteration=False))

    elements = shuffled()
    first = [int(next(elements)) for _ in range(5)]
    elements.peek()
    path = tf.train.Checkpoint(elements=elements).write(tmp_path / "c")
    rest = [int(x) for x in elements]
    again = shuffled()
    again.peek()
    tf.train.Checkpoint(elements=again).read(path).assert_consumed()
    assert int(again.peek()) == rest[0]
    assert [int(x) for x in again] == rest
    assert sorted(first + rest) == list(range(20))
