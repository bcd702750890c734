"""Writes tests/engine/cupy_names.json: what the installed CuPy offers, for tests on machines without CuPy.

For a Python that has CuPy and ml_dtypes, such as that of `make kernels`, which compares the file with CuPy. No GPU is
needed, and no library of CUDA: the modules that would load one are empty here.
"""

import argparse
import importlib
import inspect
import json
import re
import sys
import types
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parent.parent / "tests" / "engine" / "cupy_names.json"
MODULES = (
    "cupy",
    "cupy.cuda",
    "cupy.cuda.memory",
    "cupy.cuda.runtime",
    "cupy.fft",
    "cupy.lib.stride_tricks",
    "cupy.linalg",
    "cupyx",
    "cupyx.scipy.linalg",
    "cupyx.scipy.special",
)
#: Classes whose methods the engine calls; that of arrays has a part of its own.
CLASSES = (
    "cupy.cuda.Device",
    "cupy.cuda.Event",
    "cupy.cuda.Graph",
    "cupy.cuda.MemoryPointer",
    "cupy.cuda.MemoryPool",
    "cupy.cuda.PinnedMemoryPointer",
    "cupy.cuda.Stream",
    "cupy.cuda.UnownedMemory",
)
LIBRARIES = ("cublas", "cusolver", "cusparse", "cufft", "curand", "nvrtc")


def without_libraries() -> None:
    """Puts empty modules in place of the modules that load the libraries of CUDA."""
    libraries = importlib.import_module("cupy_backends.cuda.libs")
    for name in LIBRARIES:
        module = types.ModuleType(f"{libraries.__name__}.{name}")
        module.__getattr__ = _constant  # type: ignore[method-assign]
        sys.modules[module.__name__] = module
        setattr(libraries, name, module)


def _constant(name: str) -> int:
    if name.startswith("__"):
        raise AttributeError(name)
    return 0


def parameters(function: Any) -> list[str] | None:
    """The names of a function's arguments, with stars; of what Cython made, from its documentation; None: unknown."""
    try:
        listed = inspect.signature(function).parameters.values()
        names = [str(parameter).partition("=")[0].partition(":")[0].strip() for parameter in listed]
        if not {"*args", "**kwargs"} <= set(names):
            return [name for name in names if name != "self"]
    except (TypeError, ValueError):
        pass
    first = re.search(r"\(([^()]*(?:\([^()]*\))?[^()]*)\)", function.__doc__ or "")
    if first is None:
        return None
    names = [part.split("=")[0].split()[-1] for part in first[1].split(",") if part.strip()]
    return [name for name in names if name not in ("self", "/")]


def names() -> dict[str, Any]:
    """The version; functions with their arguments; ufuncs with their loops; values; modules; methods of arrays."""
    import cupy
    import ml_dtypes  # noqa: F401  # with it, CuPy has bfloat16

    without_libraries()
    functions: dict[str, Any] = {}
    ufuncs: dict[str, Any] = {}
    values: list[str] = []
    modules = {"cupy", "cupyx", *MODULES}
    for path in MODULES:
        module = importlib.import_module(path)
        for name in sorted(dir(module)):
            value = getattr(module, name, None)
            if name.startswith("_"):
                continue
            if isinstance(value, types.ModuleType):
                if value.__name__.startswith("cupy"):
                    modules.add(f"{path}.{name}")
            elif not callable(value) or (isinstance(value, type) and issubclass(value, Exception)):
                values.append(f"{path}.{name}")
            elif isinstance(value, cupy.ufunc):
                ufuncs[f"{path}.{name}"] = " ".join(value.types)
            else:
                listed = parameters(value)
                functions[f"{path}.{name}"] = None if listed is None else " ".join(listed)
    for path in CLASSES:
        module, _, of = path.rpartition(".")
        cls = getattr(importlib.import_module(module), of)
        for name in sorted(dir(cls)):
            value = getattr(cls, name)
            if name.startswith("_") and name not in ("__enter__", "__exit__"):
                continue
            if callable(value):
                functions[f"{path}.{name}"] = " ".join(parameters(value) or [])
            else:
                values.append(f"{path}.{name}")
    array = cupy.ndarray
    methods = {
        name: " ".join(parameters(getattr(array, name)) or [])
        for name in sorted(dir(array))
        if name[0] != "_" and callable(getattr(array, name))
    }
    attributes = sorted(name for name in dir(array) if name[0] != "_" and name not in methods)
    return {
        "version": cupy.__version__,
        "functions": functions,
        "ufuncs": ufuncs,
        "values": values,
        "modules": sorted(modules),
        "methods": methods,
        "attributes": attributes,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=FILE, help="another file to write")
    parser.parse_args().output.write_text(json.dumps(names(), indent=1) + "\n", encoding="utf-8")
