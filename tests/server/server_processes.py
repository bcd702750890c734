"""Processes of a server."""

import subprocess


def children(pid: int) -> set[int]:
    pids = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout.split()
    direct = {int(pid_) for pid_ in pids}
    return direct.union(*(children(pid_) for pid_ in direct)) if direct else direct
