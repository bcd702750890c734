"""Files and images: what is missing is said in words, and a function that reads files is not one command."""

import sys

import numpy as np
import pytest

import teletape as tf


def test_without_pillow_an_image_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(ModuleNotFoundError, match=r"tf\.io\.decode_png needs Pillow: pip install 'teletape\[images\]'"):
        tf.io.decode_png(b"")


def test_a_file_is_read_in_a_function(tmp_path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(np.array([1.0, 2.0], np.float32).tobytes())

    @tf.function
    def total(name):
        return tf.reduce_sum(tf.io.decode_raw(tf.io.read_file(name), tf.float32))

    assert total(tf.constant(str(path))).numpy() == 3.0
    path.write_bytes(np.array([3.0, 4.0], np.float32).tobytes())
    assert total(tf.constant(str(path))).numpy() == 7.0


def test_a_path_may_be_a_path_object(tmp_path) -> None:
    tf.io.write_file(tmp_path / "sub" / "a", "text")
    assert tf.io.read_file(tmp_path / "sub" / "a").numpy() == b"text"
    assert tf.io.gfile.listdir(tmp_path) == ["sub"]


def test_frames_of_a_gif_and_of_other_images(tmp_path) -> None:
    from PIL import Image

    frames = [Image.new("RGB", (3, 2), (number * 80, 0, 0)) for number in range(3)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    contents = tf.io.read_file(tmp_path / "a.gif")
    decoded = tf.io.decode_gif(contents)
    assert decoded.shape == [3, 2, 3, 3]
    np.testing.assert_array_equal(decoded[:, 0, 0, 0], [0, 80, 160])
    assert tf.io.decode_image(contents).shape == [3, 2, 3, 3]
    assert tf.io.decode_image(contents, expand_animations=False).shape == [2, 3, 3]
    for name in ("a.bmp", "a.webp"):
        frames[1].save(tmp_path / name, **({"lossless": True} if name == "a.webp" else {}))
        still = tf.io.read_file(tmp_path / name)
        np.testing.assert_array_equal(tf.io.decode_image(still)[0, 0], [80, 0, 0])
    np.testing.assert_array_equal(tf.io.decode_bmp(tf.io.read_file(tmp_path / "a.bmp"), channels=3)[1, 2], [80, 0, 0])


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB", ""])
def test_strings_are_decompressed(kind: str) -> None:
    import gzip
    import zlib

    packed = {"GZIP": gzip.compress, "ZLIB": zlib.compress, "": bytes}[kind](b"text")
    assert tf.io.decode_compressed(packed, kind).numpy() == b"text"
    if kind:
        with pytest.raises(tf.errors.DataLossError):
            tf.io.decode_compressed(b"text", kind)
