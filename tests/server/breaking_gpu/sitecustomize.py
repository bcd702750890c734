"""Python imports this when it starts with this folder on its path: on SIGUSR2 the process breaks its GPU.

A kernel writes where there is no memory, after which CUDA refuses everything in the process.
"""

import signal


def break_gpu(*_: object) -> None:
    import cupy
    import numpy

    source = 'extern "C" __global__ void astray(int* place) { *place = 1; }'
    cupy.RawKernel(source, "astray")((1,), (1,), (numpy.uint64(16),))


signal.signal(signal.SIGUSR2, break_gpu)
