"""What is published lies in files: all of it is there after a restart, damage is reported, and nothing is deleted."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from published_versions import WEIGHTS, filled, version

from teletape_server.models.published.contract import Name
from teletape_server.published.store import Catalogue, FileStore, MemoryStore


def test_what_is_kept_is_there_again(tmp_path: Path) -> None:
    _, name = filled(tmp_path)
    again = Catalogue(FileStore(str(tmp_path)))
    assert again.names == {"line": name}
    file = again.open_weights(name.versions[name.aliases["latest"]].weights_hash)
    assert os.pread(file, 10_000, 0) == WEIGHTS
    os.close(file)


def test_weights_are_deleted_with_the_last_version_that_has_them(tmp_path: Path) -> None:
    catalogue, name = filled(tmp_path)
    weights = tmp_path / "published" / "weights"
    catalogue.put(replace(name, name="copy"))
    catalogue.remove(name)
    assert len([*weights.iterdir()]) == 1
    catalogue.put(catalogue.names["copy"].without_version(name.aliases["latest"]))
    assert [*weights.iterdir()] == []
    assert [item.name for item in Catalogue(FileStore(str(tmp_path))).names.values()] == ["copy"]


def test_a_write_that_was_cut_off_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue, name = filled(tmp_path)

    def fail(_: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space"):
        catalogue.put(replace(name, description="another"))
    assert catalogue.names == {"line": name}
    assert Catalogue(FileStore(str(tmp_path))).names == {"line": name}


def test_a_deletion_that_was_cut_off_is_none_of_the_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue, name = filled(tmp_path)

    def fail(path: Path) -> None:
        raise OSError(f"{path}: the server has ended")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", fail)
        with pytest.raises(OSError, match="has ended"):
            catalogue.remove(name)
    again = Catalogue(FileStore(str(tmp_path)))
    assert again.names == {}
    again.put(replace(name, versions=dict([*name.versions.items()][:1])))
    again.remove(again.names["line"])
    assert [*(tmp_path / "published" / "names").iterdir()] == []


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        ("name.json", "cannot be read"),
        ("{heavy}.json", "version {heavy}"),
        ("../../weights/{hash}.safetensors", "3 bytes"),
    ],
)
def test_damage_is_reported_and_nothing_is_deleted(tmp_path: Path, damaged: str, message: str) -> None:
    catalogue, name = filled(tmp_path)
    heavy = name.versions[name.aliases["latest"]]
    facts = {"heavy": heavy.version, "hash": heavy.weights_hash}
    path = (tmp_path / "published" / "names" / "line" / damaged.format(**facts)).resolve()
    path.write_bytes(b"{x}")
    again = Catalogue(FileStore(str(tmp_path)))
    assert message.format(**facts) in again.names["line"].damage
    again.put(Name("other", "ann").with_version(version()))
    assert path.read_bytes() == b"{x}"
    files = {file.name for file in tmp_path.rglob("*") if file.is_file()}
    assert files >= {"name.json", f"{heavy.version}.json", f"{heavy.weights_hash}.safetensors"}
    del catalogue


def test_a_record_of_another_content_is_damage(tmp_path: Path) -> None:
    _, name = filled(tmp_path)
    light = next(iter(name.versions))
    path = tmp_path / "published" / "names" / "line" / f"{light}.json"
    record = json.loads(path.read_text())
    record["commands"][0]["outputs"] = []
    path.write_text(json.dumps(record))
    assert "it was changed" in Catalogue(FileStore(str(tmp_path))).names["line"].damage


def test_weights_in_memory_are_a_file_that_processes_map() -> None:
    store = MemoryStore()
    store.put_weights("ab", WEIGHTS)
    file = store.open_weights("ab")
    assert os.pread(file, 10_000, 0) == WEIGHTS
    os.close(file)
    store.keep_weights([])
    with pytest.raises(FileNotFoundError):
        store.open_weights("ab")
