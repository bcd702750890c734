"""Where CuPy keeps the kernels that it compiles, for processes that may not write into their home."""

import os
from pathlib import Path

import pytest

from teletape_server.ipc.confinement import name_kernel_folder


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files, of a process that has CuPy and whose home is no folder."""
    folder, packages = tmp_path / "temporary", tmp_path / "packages"
    for each in (folder, packages):
        each.mkdir()
    (packages / "cupy.py").touch()
    monkeypatch.syspath_prepend(packages)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setenv("HOME", os.devnull)
    return folder


def named(environment: dict[str, str] | None = None) -> str | None:
    environment = {} if environment is None else environment
    name_kernel_folder(environment)
    return environment.get("CUPY_CACHE_DIR")


def test_a_folder_that_is_named_stays(temporary: Path) -> None:
    assert named({"CUPY_CACHE_DIR": "/elsewhere"}) == "/elsewhere"


def test_in_a_home_that_can_be_written_the_choice_is_cupys(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(temporary))
    assert named() is None
    assert not list(temporary.iterdir()), "CuPy makes the folder when it has a kernel"


@pytest.mark.parametrize("path", [".cupy", ".cupy/kernel_cache"])
def test_what_stands_in_the_way_of_cupys_choice_rules_it_out(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    file = temporary / "home" / path
    file.parent.mkdir(parents=True)
    file.touch()
    monkeypatch.setenv("HOME", str(temporary / "home"))
    assert named() == str(temporary / f"cupy-{os.getuid()}")


def test_a_process_without_cupy_needs_no_folder(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert named() is None
    assert not list(temporary.iterdir())


def test_where_no_folder_can_be_made_none_is_named(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", os.devnull)
    assert named() is None


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
