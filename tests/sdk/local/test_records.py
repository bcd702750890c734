"""TFRecord files and examples: what the recorded programs of tests/conformance cannot ask."""

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import teletape as tf
from teletape.tf.files import record_files as frames


def test_a_record_has_the_bytes_of_the_format(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(b"\x01\x02")
    length, checksum = path.read_bytes()[:8], path.read_bytes()[8:12]
    assert int.from_bytes(length, "little") == 2
    assert checksum != b"\0\0\0\0"
    assert len(path.read_bytes()) == 8 + 4 + 2 + 4


def test_a_closed_writer_refuses(tmp_path: Path) -> None:
    writer = tf.io.TFRecordWriter(tmp_path / "a")
    writer.close()
    writer.close()
    with pytest.raises(ValueError, match="the writer is closed"):
        writer.write(b"")


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_what_is_flushed_is_in_the_file(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "a"
    with tf.io.TFRecordWriter(path, compression) as writer:
        writer.write(b"text")
        before = path.stat().st_size
        writer.flush()
        assert path.stat().st_size > before
    assert list(frames.records(str(path), compression)) == [b"text"]


def test_a_large_file_is_read_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "a"
    texts = [bytes([i]) * 300_000 for i in range(12)]
    with tf.io.TFRecordWriter(path, "ZLIB") as writer:
        for text in texts:
            writer.write(text)
    assert list(frames.records(str(path), "ZLIB")) == texts


@pytest.mark.parametrize("size", [3, 13, 20])
def test_a_file_that_ends_too_early_is_found_out(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a"
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(b"a long text")
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(tf.errors.DataLossError, match="truncated record at 0"):
        list(frames.records(str(path)))


def test_another_compression_is_refused(tmp_path: Path) -> None:
    for call in (lambda: tf.io.TFRecordWriter(tmp_path / "a", "LZ4"), lambda: list(frames.records("a", "LZ4"))):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Unsupported compression_type 'LZ4'"):
            call()


def test_sparse_features_are_refused_in_words() -> None:
    text = tf.train.Example().SerializeToString()
    with pytest.raises(tf.errors.UnimplementedError, match="use FixedLenSequenceFeature"):
        tf.io.parse_single_example(text, {"x": tf.io.VarLenFeature(tf.int64)})
    with pytest.raises(tf.errors.UnimplementedError, match="the feature 'x' is a str"):
        tf.io.parse_single_example(text, {"x": "int64"})


def test_a_sequence_of_examples_is_a_message() -> None:
    sequence = tf.train.SequenceExample()
    sequence.feature_lists.feature_list["words"].feature.add().int64_list.value.append(3)
    again = tf.train.SequenceExample.FromString(sequence.SerializeToString())
    assert again.feature_lists.feature_list["words"].feature[0].int64_list.value == [3]
    assert isinstance(again, tf.train.SequenceExample)
    assert not isinstance(again, tf.train.Example)
    assert repr(tf.train.Example) == "<class tf.train.Example>"


def test_without_the_libraries_the_command_that_installs_them_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.import_module

    def without(name: str, package: str | None = None) -> Any:
        if name.startswith("google"):
            raise ModuleNotFoundError(name=name)
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'teletape\[records\]'"):
        tf.io.TFRecordWriter(tmp_path / "a")


def test_importing_teletape_imports_neither_library() -> None:
    code = "import sys, teletape; print([name for name in sys.modules if name.startswith('google')])"
    result = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
