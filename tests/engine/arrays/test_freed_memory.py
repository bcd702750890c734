"""Freed memory is used again: arrays of some megabytes do not come from the system anew each time."""

import ctypes
import subprocess
import sys

import pytest

CODE = """if True:
    import resource
    import numpy as np
    from teletape_engine import arrays
    arrays.backend("cpu")
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
def test_arrays_take_the_memory_that_others_have_left():
    done = subprocess.run([sys.executable, "-P", "-c", CODE], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1000  # page faults: without it 20,000
