"""Freed memory is used again where the SDK or a server's worker wants it; the engine leaves the process as it is."""

import ctypes
import subprocess
import sys

import pytest

CODE = """if True:
    import resource
    import numpy as np
    {begin}
    def faults():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(20):
            first, second = np.ones(1 << 20), np.ones(1 << 20)  # 8 MiB each: 2,048 pages
            del first, second
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    faults()
    print(faults())
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"),
    reason="another C library than glibc",
)
@pytest.mark.parametrize(
    ("begin", "least", "most"),
    [
        ("import teletape; teletape.constant(1.0)", 0, 1000),
        ("from teletape_server.hosts.processes import inherited", 0, 1000),
        ("from teletape_engine import arrays; arrays.backend('cpu')", 10_000, 50_000),
    ],
)
def test_the_page_faults_of_twenty_times_two_arrays(begin: str, least: int, most: int) -> None:
    command = [sys.executable, "-P", "-c", CODE.replace("{begin}", begin)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert least <= int(done.stdout) < most
