"""What runs a program on a GPU with each system; a call returns when the GPU has computed all of it."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from suite.bindings import Binding, Call, Jax, RemoteFunction, TeletapeEager


class Teletape(TeletapeEager):
    """Teletape in this process, op by op."""

    def library(self) -> Any:
        import teletape as tf

        tf.connect(device="gpu", local=True)
        return tf

    def load(self, program: Any, data: dict[str, Any]) -> Call:
        call, wait = super().load(program, data), waiting()
        return lambda: wait(call())


class Function(Teletape):
    """A traced function, which runs as a plan from its second call.

    Without AutoGraph, whose package a machine with a GPU may lack: the programs have no control flow of Python's.
    """

    def step(self, program: Any, data: dict[str, Any]) -> tuple[Callable[..., Any], list[np.ndarray]]:
        step, arguments = super().step(program, data)
        return self.tf.function(step, autograph=False), arguments


class Remote(RemoteFunction):
    """A traced function in a session of a server on the GPU: the batch goes up, the loss comes down."""

    def library(self) -> Any:
        import teletape as tf

        tf.connect(os.environ["BENCHMARK_ADDRESS"], device="gpu")
        return tf

    def step(self, program: Any, data: dict[str, Any]) -> tuple[Callable[..., Any], list[np.ndarray]]:
        step, arguments = program.tensorflow(self.tf, data)
        return self.tf.function(step, autograph=False), arguments


class CuPy(Binding):
    """CuPy itself: the least that a program on it costs. For programs that have `cupy`."""

    def load(self, program: Any, data: dict[str, Any]) -> Call:
        import cupy

        step, arguments = program.cupy(cupy, data)
        arrays, wait = [cupy.asarray(argument) for argument in arguments], waiting()
        return lambda: wait(step(*arrays))

    def arrays(self, results: Sequence[Any]) -> list[np.ndarray]:
        return [result.get() for result in results]


def waiting() -> Callable[[Sequence[Any]], Sequence[Any]]:
    """A function that returns results when all work of the GPU is done."""
    import cupy

    def wait(results: Sequence[Any]) -> Sequence[Any]:
        cupy.cuda.runtime.deviceSynchronize()
        return results

    return wait


class Torch(Binding):
    """PyTorch, op by op."""

    compiled = False

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import torch

        if not torch.cuda.is_available():
            raise RuntimeError("this PyTorch sees no GPU")
        torch.set_default_device("cuda")
        self.torch = torch

    def load(self, program: Any, data: dict[str, Any]) -> Call:
        step, arguments = program.pytorch(self.torch, data)
        step = self.torch.compile(step) if self.compiled else step
        tensors = [self.torch.from_numpy(argument).cuda() for argument in arguments]
        wait = self.torch.cuda.synchronize

        def call() -> Sequence[Any]:
            results = step(*tensors)
            wait()
            return results

        return call

    def arrays(self, results: Sequence[Any]) -> list[np.ndarray]:
        return [result.detach().cpu().numpy() for result in results]


class TorchCompiled(Torch):
    """PyTorch, compiled."""

    compiled = True


class JaxOnGpu(Jax):
    """JAX, compiled."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        if self.jax.default_backend() != "gpu":
            raise RuntimeError("this JAX sees no GPU")
