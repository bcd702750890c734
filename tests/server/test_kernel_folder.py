"""Where CuPy keeps the kernels that it compiles, for processes that may not write into their home."""

import os
from pathlib import Path

import pytest

from teletape_server.worker.confinement import name_kernel_folder


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files, of a process whose home is no folder."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("HOME", os.devnull)
    return tmp_path


def named(environment: dict[str, str] | None = None) -> str | None:
    environment = {} if environment is None else environment
    name_kernel_folder(environment)
    return environment.get("CUPY_CACHE_DIR")


def test_a_folder_that_is_named_stays(temporary: Path) -> None:
    assert named({"CUPY_CACHE_DIR": "/elsewhere"}) == "/elsewhere"


def test_in_a_home_that_can_be_written_the_choice_is_cupys(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(temporary))
    assert named() is None
    assert (temporary / ".cupy" / "kernel_cache").is_dir()


def test_else_it_is_one_for_all_processes_of_a_user(temporary: Path) -> None:
    folder = named()
    assert folder == str(temporary / f"cupy-{os.getuid()}")
    assert os.stat(folder).st_mode & 0o777 == 0o700
    assert named() == folder


@pytest.mark.parametrize("kind", ["link", "open"])
def test_a_folder_into_which_others_could_put_kernels_is_not_used(temporary: Path, kind: str) -> None:
    usual = temporary / f"cupy-{os.getuid()}"
    if kind == "link":
        (temporary / "elsewhere").mkdir()
        usual.symlink_to(temporary / "elsewhere")
    else:
        usual.mkdir()
        usual.chmod(0o777)
    folder = named()
    assert folder is not None
    assert folder != str(usual)
    assert os.stat(folder).st_mode & 0o777 == 0o700
