"""The systems and rows that are measured on a GPU; the programs are those of the CPU, larger."""

from suite.rows import Goal, Row
from suite.systems import System

SYSTEMS = {
    "gpu": System("Teletape", "gpu.bindings.Teletape", ("numpy", "cupy-cuda13x"), on_gpu=True),
    "gpu-function": System("Teletape function", "gpu.bindings.Function", ("numpy",), on_gpu=True),
    "gpu-cupy": System("CuPy", "gpu.bindings.CuPy", ("numpy",), on_gpu=True),
    "gpu-torch": System("PyTorch", "gpu.bindings.Torch", ("torch",), peer=True, on_gpu=True),
    "gpu-compile": System("torch.compile", "gpu.bindings.TorchCompiled", ("torch",), peer=True, on_gpu=True),
    "gpu-jax": System(
        "jax.jit",
        "gpu.bindings.JaxOnGpu",
        ("jax",),
        peer=True,
        on_gpu=True,
        settings={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},  # else it takes three quarters of the memory
    ),
    "gpu-remote": System("through a server", "gpu.bindings.Remote", ("numpy",), server="teletape", on_gpu=True),
}
ALL = ("gpu", "gpu-function", "gpu-torch", "gpu-compile", "gpu-jax")
#: torch.compile takes minutes for a chain of 1000 ops.
CHAIN = ("gpu", "gpu-function", "gpu-torch", "gpu-jax")
FLOORS = ("gpu", "gpu-cupy", "gpu-torch")
FLOOR = Goal("gpu", 1.02, ("gpu-cupy",))
EAGER = Goal("gpu", 1.0, ("gpu-torch",))
GRAPH = Goal("gpu-function", 1.0, ("gpu-jax",))
PLAN = Goal("gpu-function", 1.3, ("gpu-compile",))

#: The most telling ones first.
ROWS = {
    "launch": Row(
        "chain of 1000 ops, an op",
        "chain",
        {"ops": 1000},
        CHAIN,
        (EAGER, GRAPH),
        unit="µs",
        per=1000,
    ),
    "mlp": Row("network 784-512-256-10, batch 8192", "mlp", {"batch": 8192}, ALL, (EAGER, PLAN)),
    "remote": Row(
        "update of the network, batch 512, on the device and through a server",
        "mlp",
        {"batch": 512, "update": True},
        ("gpu", "gpu-function", "gpu-remote", "gpu-torch"),
    ),
    "elementwise": Row("elementwise chain of 10^8", "elementwise", {"elements": 10**8}, ALL, (EAGER, PLAN)),
    "transformer": Row(
        "transformer block, 32 x 512 x 1024",
        "transformer",
        {"batch": 32, "length": 512, "width": 1024, "heads": 16},
        ALL,
        (EAGER, PLAN),
    ),
    "matmul": Row("product of 8192 x 8192, float32", "product", {"n": 8192}, FLOORS, (FLOOR,)),
    "copy": Row("x + 1 of 2^28 numbers", "add", {"elements": 1 << 28}, FLOORS, (FLOOR,)),
    "hessian": Row("Hessian, 50 parameters", "hessian", {"parameters": 50}, ALL),
    "attention": Row(
        "attention, 8 x 16 x 1024 x 64",
        "attention",
        {"batch": 8, "heads": 16, "length": 1024, "width": 64},
        ALL,
    ),
    "convnet": Row("small convolutional network, batch 1024", "convnet", {"batch": 1024}, ALL),
    "gaussian-process": Row("Gaussian process, n = 4000", "gaussian_process", {"points": 4000}, ALL),
}
#: Sizes for a try of the command itself.
SMALL = {
    "matmul": {"n": 64},
    "copy": {"elements": 1 << 12},
    "launch": {"ops": 10},
    "elementwise": {"elements": 1000},
    "mlp": {"batch": 8},
    "convnet": {"batch": 2},
    "transformer": {"batch": 2, "length": 8, "width": 16, "heads": 2},
    "attention": {"batch": 2, "heads": 2, "length": 8, "width": 4},
    "gaussian-process": {"points": 20},
    "hessian": {"parameters": 4},
    "remote": {"batch": 8, "update": True},
}
