"""Keys share the CPU by weight: control groups, made where the server may make them."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from serving import ok
from teletape_server.hosts.chosen_shares import chosen_shares
from teletape_server.hosts.control_groups import ControlGroups, Tree, own_tree
from teletape_server.hosts.shares import Shares, SharesError
from teletape_server.hosts.time_slices import TimeSlices
from teletape_server.ipc.rights import Rights
from teletape_server.settings import Settings, SettingsError

SECOND = "30 23 0:26 / {} rw - cgroup2 cgroup2 rw\n"
FIRST = "32 31 0:29 / {}/cpu rw,relatime - cgroup cgroup rw,cpu\n33 31 0:30 / {}/memory rw - cgroup cgroup rw,memory\n"


def rules(folder: Path, groups: str, mounts: str) -> Path:
    (folder / "cgroup").write_text(groups)
    (folder / "mountinfo").write_text(mounts.replace("{}", str(folder / "tree")))
    return folder


def test_the_server_s_own_group_is_the_root_in_version_2(tmp_path: Path) -> None:
    group = tmp_path / "tree/system.slice/teletape.service"
    group.mkdir(parents=True)
    (group / "cgroup.controllers").write_text("cpu memory\n")
    tree = own_tree(rules(tmp_path, "0::/system.slice/teletape.service\n", SECOND))
    assert tree == Tree(group, "cpu.weight", 100, is_second=True)


def test_where_version_2_has_no_cpu_it_is_version_1(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/cgroup.controllers").write_text("hugetlb\n")
    tree = own_tree(rules(tmp_path, "2:cpu:/box\n1:memory:/box\n0::/\n", SECOND + FIRST))
    assert tree == Tree(tmp_path / f"tree/cpu/box/teletape-{os.getpid()}", "cpu.shares", 1024, is_second=False)
    with pytest.raises(SharesError, match="no tree of control groups"):
        own_tree(rules(tmp_path, "1:memory:/box\n0::/\n", SECOND + FIRST))


def test_the_group_of_a_key_has_its_weight_and_the_server_comes_first(tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").write_text("11\n12\n")
    for name in ("server", "keys", "keys/key-ann", "keys/key-a%2Fb"):  # as the system has the files in each new group
        (tmp_path / name).mkdir()
        (tmp_path / name / "cpu.weight").touch()
    shares = ControlGroups(Tree(tmp_path, "cpu.weight", 100, is_second=True), Rights({"ann": 2.5}))
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu"
    assert (tmp_path / "server/cgroup.procs").read_text() == "12"  # the last one that was written
    shares.enter(17, "ann")
    shares.enter(18, "a/b")
    assert (tmp_path / "keys/cgroup.subtree_control").read_text() == "+cpu"
    read = {name: (tmp_path / name / "cpu.weight").read_text() for name in ("server", "keys/key-ann", "keys/key-a%2Fb")}
    assert read == {"server": "2000", "keys/key-ann": "250", "keys/key-a%2Fb": "100"}
    assert (tmp_path / "keys/key-a%2Fb/cgroup.procs").read_text() == "18"


def test_weights_are_corrected_by_what_keys_have_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a kernel that gives a small weight two and a half times its part."""
    monkeypatch.setattr("teletape_server.hosts.control_groups.cores", lambda: 2)
    rights = Rights({"ann": 4.0, "bob": 2.0, "eve": 0.5, "@lab": 0.5}, lambda owner: "@lab" if owner == "lou" else "")
    had = dict.fromkeys(("ann", "bob", "eve", "lou"), 0.0)
    clocks = iter([*had, "now and then"])

    def clock(pid: int) -> SimpleNamespace:
        owner = next(clocks)
        return SimpleNamespace(seconds=lambda: had.get(owner, 0.0), begin=lambda: None)

    monkeypatch.setattr("teletape_server.hosts.control_groups.CpuClock", clock)
    shares = ControlGroups(Tree(tmp_path / "shares", "cpu.shares", 1024, is_second=False), rights)
    for owner in (*had, "now and then"):
        shares.enter(os.getpid() + len(shares._clocks), owner)

    def weight(owner: str) -> float:
        folder = "group-lab" if owner == "lou" else "keys"
        return int((tmp_path / f"shares/{folder}/key-{owner}/cpu.shares").read_text()) / 1024

    for look in range(120):
        kernel = {"ann": weight("ann"), "bob": weight("bob"), "eve": 2.5 * weight("eve")}
        had |= {owner: each / sum(kernel.values()) for owner, each in kernel.items()}
        shares.balance(dict.fromkeys(had, 4) | ({"now and then": 4} if look % 10 < 3 else {}))
    for owner, right in {"ann": 4 / 6.5, "bob": 2 / 6.5, "eve": 0.5 / 6.5}.items():
        assert had[owner] == pytest.approx(right, rel=0.02)
    assert weight("lou") == 1.0, "it is alone in its group"
    shares.balance({"ann": 1})
    shares.balance({"ann": 1})
    shares.balance({"ann": 1})
    assert (weight("ann"), weight("eve")) == (40.0, 5.0), "there is enough for all: nothing is corrected"


def test_a_key_that_gets_all_that_it_wants_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teletape_server.hosts.control_groups.cores", lambda: 4)
    shares = ControlGroups(Tree(tmp_path / "shares", "cpu.shares", 1024, is_second=False), Rights({"ann": 2.0}))
    for owner in ("ann", "bob", "eve"):
        shares.enter(os.getpid(), owner)

    def weights(**busy: int) -> list[float]:
        shares.balance(busy)
        files = [tmp_path / f"shares/keys{part}/cpu.shares" for part in ("", "/key-ann", "/key-bob", "/key-eve")]
        return [int(file.read_text()) / 1024 for file in files]

    assert weights(ann=2, bob=1) == [10, 20, 10, 10]
    assert weights(ann=3, bob=2) == [1, 2, 1, 10]  # two and two thirds are ann's right, and one and a third bob's
    assert weights(ann=1, bob=20) == [1, 2, 1, 10]  # a look later it may have three again
    assert weights(bob=20) == [1, 2, 1, 10]
    assert weights() == [1, 20, 1, 10]
    assert weights() == [1, 20, 1, 10]
    assert weights() == [10, 20, 10, 10]


def test_a_group_with_a_part_of_its_own_has_the_groups_of_its_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = SimpleNamespace(seconds=lambda: 0.0, begin=lambda: None)
    monkeypatch.setattr("teletape_server.hosts.control_groups.CpuClock", lambda pid: idle)
    groups = {"ann": "@lab", "bob": "@lab", "cid": "@others"}
    rights = Rights({"@lab": 0.4, "bob": 3.0}, lambda owner: groups.get(owner, ""))
    shares = ControlGroups(Tree(tmp_path / "shares", "cpu.shares", 1000, is_second=False), rights)

    def tree() -> dict[str, int]:
        files = (tmp_path / "shares").rglob("cpu.shares")
        return {str(file.parent.relative_to(tmp_path / "shares")): int(file.read_text()) for file in files}

    for owner in ("ann", "bob", "cid"):
        shares.enter(os.getpid(), owner)
    server = {".": 20000, "server": 20000}
    lab = {"group-lab": 400, "group-lab/key-ann": 1000, "group-lab/key-bob": 3000}
    assert tree() == {**server, **lab, "keys": 600, "keys/key-cid": 1000}
    shares.balance({"ann": 99, "bob": 99, "cid": 99})
    assert tree() == {**server, **lab, "keys": 600, "keys/key-cid": 1000}
    groups["ann"] = ""
    shares.balance({"ann": 99, "bob": 99, "cid": 99})
    assert (tmp_path / "shares/keys/key-ann/cgroup.procs").read_text() == str(os.getpid())
    assert tree()["keys/key-ann"] == 1000


def test_rights_are_shared_by_weight_within_the_part_of_a_group() -> None:
    groups = {"ann": "@lab", "bob": "@lab", "cid": "@others"}
    rights = Rights({"@lab": 0.5, "bob": 3.0}, lambda owner: groups.get(owner, ""))
    everybody = {"ann": 9.0, "bob": 9.0, "cid": 9.0, "dora": 9.0}
    assert rights.shared(everybody, 8.0) == {"ann": 1.0, "bob": 3.0, "cid": 2.0, "dora": 2.0}
    assert rights.shared({**everybody, "bob": 1.0}, 8.0) == {"ann": 3.0, "bob": 1.0, "cid": 2.0, "dora": 2.0}
    some = {**everybody, "ann": 0.5, "bob": 0.5}
    assert rights.shared(some, 8.0) == {"ann": 0.5, "bob": 0.5, "cid": 3.5, "dora": 3.5}
    assert rights.shared({"cid": 9.0}, 8.0) == {"cid": 8.0}
    assert rights.shared({"cid": 1.0, "dora": 0.0}, 8.0) == {"cid": 1.0, "dora": 0.0}
    assert rights.shared({}, 8.0) == {}


def test_a_tree_that_may_not_be_changed_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(
        "teletape_server.hosts.chosen_shares.own_tree", lambda: Tree(tmp_path / "file", "cpu.weight", 100, True)
    )
    with pytest.raises(SharesError, match="cannot be changed"):
        chosen_shares("groups", Rights())
    assert isinstance(chosen_shares("auto", Rights()), TimeSlices)  # the group is not the server's own
    assert not chosen_shares("off", Rights()).by_right


def test_where_the_kernel_does_not_say_how_long_processes_wait_they_share_by_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(*_: object) -> int:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("teletape_server.hosts.time_slices.os.pidfd_open", missing)
    with pytest.raises(SharesError, match="the kernel does not say how long"):
        chosen_shares("slices", Rights())
    assert type(chosen_shares("auto", Rights())) is Shares


def test_weights_are_read_from_a_setting() -> None:
    assert Settings.load(["--weights", "ann=3, bob=0.5,@lab=40%"], {}).weights == {"ann": 3.0, "bob": 0.5, "@lab": 0.4}
    assert Settings.load(["--weights", "@lab=50%,@shop=49%"], {}).weights == {"@lab": 0.5, "@shop": 0.49}
    for wrong in ("ann", "ann=0", "ann=101", "=1", "ann=-1", ",", "ann=3%", "@lab=3", "@lab=0.5%", "@a=50%,@b=50%"):
        with pytest.raises(SettingsError, match=r"weights from 0\.01 to 100, and of groups with percents"):
            Settings.load(["--weights", wrong], {})


@pytest.fixture
def tree() -> Tree:
    """A part of this system's tree, if this process may change it."""
    try:
        tree = own_tree()
    except SharesError as error:
        pytest.skip(str(error))
    if tree.is_second:
        pytest.skip("version 2 has the CPU: the group of these tests has other processes")
    try:
        tree.folder.mkdir()
        tree.folder.rmdir()
    except OSError as error:
        pytest.skip(f"{tree.folder}: {error.strerror}")
    return tree


def test_processes_of_two_keys_share_a_cpu_by_their_weights_however_many_they_are(tree: Tree) -> None:
    shares = ControlGroups(tree, Rights({"ann": 4.0}))
    [cpu, *_] = sorted(os.sched_getaffinity(0))
    spin = f"import os; os.sched_setaffinity(0, [{cpu}])\nwhile True: pass"
    with ExitStack() as stack:
        processes = {}
        for owner in ("ann", "bob", "bob", "bob"):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-I", "-S", "-c", spin]))
            stack.callback(process.kill)
            shares.enter(process.pid, owner)
            processes[process] = owner
        time.sleep(1.0)
        used = {"ann": 0.0, "bob": 0.0}
        for process, owner in processes.items():
            used[owner] += time.clock_gettime((~process.pid << 3) | 2)  # the clock of its CPU time
    for process, owner in processes.items():
        shares.leave(process.pid, owner)
    shares.close()
    assert used["ann"] > 2 * used["bob"]
    assert not tree.folder.exists()


def test_a_server_puts_the_processes_of_a_key_into_its_group_until_they_end(tree: Tree) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TELETAPE_")}
    command = [sys.executable, "-P", "-m", "teletape_server.cli", "serve", "--port", "0", "--shares", "groups"]
    with subprocess.Popen(
        [*command, "--log-level", "error"],
        env=environment | {"TELETAPE_API_KEYS": "ann:open-sesame-1"},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            url = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
            assert url
            headers = {"Authorization": "Bearer open-sesame-1"}
            groups = tree.folder.parent / f"teletape-{process.pid}"
            with httpx.Client(base_url=url[0], headers=headers, trust_env=False, timeout=60) as http:
                ok(http.post("/v1/sessions", json={"id": "demo"}))
                [worker] = (groups / "keys/key-ann/cgroup.procs").read_text().split()
                server = (groups / "server/cgroup.procs").read_text().split()
                assert str(process.pid) in server
                assert worker not in server
                ok(http.delete("/v1/sessions/demo"))
                deadline = time.monotonic() + 30
                while (groups / "keys/key-ann").exists():
                    assert time.monotonic() < deadline
                    time.sleep(0.01)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
    assert not groups.exists()
