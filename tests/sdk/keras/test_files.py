"""Keras's downloads without internet: from a local file, from the folder of downloads, and in words what is missing."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

import teletape as tf

CLOSED = "http://127.0.0.1:9/numbers.npz"  # nothing listens there


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "numbers.npz"
    np.savez(path, x=np.arange(3))
    return path


def test_a_local_file_is_copied_to_the_folder_of_downloads(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "home").mkdir()
    path = tf.keras.utils.get_file(origin=archive.as_uri(), cache_dir=str(tmp_path / "home"))
    assert Path(path) == tmp_path / "home" / "datasets" / "numbers.npz"
    with np.load(path) as file:
        assert file["x"].tolist() == [0, 1, 2]
    assert f"Downloading data from {archive.as_uri()}" in capsys.readouterr().out


def test_a_file_in_that_folder_is_not_downloaded(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "datasets").mkdir()
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    kept_there = archive.rename(tmp_path / "datasets" / "numbers.npz")
    path = tf.keras.utils.get_file(origin=CLOSED, file_hash=digest, cache_dir=str(tmp_path))
    assert Path(path) == kept_there


def test_what_cannot_be_downloaded_says_where_the_file_belongs(tmp_path: Path) -> None:
    with pytest.raises(ConnectionError) as error:
        tf.keras.utils.get_file(origin=CLOSED, cache_dir=str(tmp_path))
    assert str(error.value).startswith(f"URL fetch failure on {CLOSED}")
    assert f"put the file at {tmp_path / 'datasets' / 'numbers.npz'}" in str(error.value)


def test_datasets_use_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from keras.src.datasets import mnist

    assert mnist.get_file is tf.keras.utils.get_file


def test_other_errors_stay_as_they_are() -> None:
    with pytest.raises(ValueError, match='specify the "origin" argument'):
        tf.keras.utils.get_file("numbers.npz")
