"""Generated kernels on the CPU: their sources as C++, with the threads of a block in turn."""

import ctypes
import re
import subprocess

from teletape_engine.plans.gpu.codes import PRELUDE
from teletape_engine.plans.gpu.source import NAME, THREADS

#: What CUDA has and C++ has not. `widened` and `narrowed` are left out: no kernel of 16-bit floats runs here.
SHIM = f"""
#include <cmath>
#include <cstring>
#include <ucontext.h>
using std::isnan; using std::isinf; using std::isfinite;
struct Index {{ unsigned x; }};
struct float2 {{ float x, y; }};
struct double2 {{ double x, y; }};
static Index blockIdx, threadIdx, gridDim;
static ucontext_t scheduler, threads[{THREADS}];
static char stacks[{THREADS}][16384];
static void (*kernel)(void**);
static void** arguments;
static bool ended[{THREADS}];
#define __global__
#define __shared__ static
#define __fadd_rn(a, b) ((float)((a) + (b)))
#define __fsub_rn(a, b) ((float)((a) - (b)))
#define __fmul_rn(a, b) ((float)((a) * (b)))
#define __dadd_rn(a, b) ((a) + (b))
#define __dsub_rn(a, b) ((a) - (b))
#define __dmul_rn(a, b) ((a) * (b))
static float nan_number() {{ return NAN; }}
static float infinite() {{ return INFINITY; }}
static void __syncthreads() {{ swapcontext(&threads[threadIdx.x], &scheduler); }}
static void enter() {{ unsigned x = threadIdx.x; kernel(arguments); ended[x] = true; }}
extern "C" void launch(void (*function)(void**), unsigned blocks, void** given) {{
  kernel = function; arguments = given; gridDim.x = blocks;
  for (unsigned block = 0; block < blocks; ++block) {{
    blockIdx.x = block;
    memset(ended, 0, sizeof ended);
    for (int x = 0; x < {THREADS}; ++x) {{
      getcontext(&threads[x]);
      threads[x].uc_stack.ss_sp = stacks[x];
      threads[x].uc_stack.ss_size = sizeof stacks[x];
      threads[x].uc_link = &scheduler;
      makecontext(&threads[x], enter, 0);
    }}
    for (bool running = true; running;) {{
      running = false;
      for (int x = 0; x < {THREADS}; ++x) {{
        if (ended[x]) continue;
        threadIdx.x = x;
        swapcontext(&scheduler, &threads[x]);
        running = true;
      }}
    }}
  }}
}}
"""


def compiled(sources, folder):
    """A library with the kernels of these sources, and `launch`."""
    text = [SHIM]
    for number, source in enumerate(sources):
        name = f"{NAME}_{number}"
        body = source.removeprefix(PRELUDE).replace(NAME, name)
        types = [parameter.rsplit(" ", 1)[0] for parameter in re.search(r"\((.*)\) {", body)[1].split(", ")]
        values = ", ".join(f"*({kind}*)given[{at}]" for at, kind in enumerate(types))
        text += [body, f'extern "C" void call_{number}(void** given) {{ {name}({values}); }}']
    path = folder / "kernels.cpp"
    path.write_text("\n".join(text))
    library = folder / "kernels.so"
    subprocess.run(
        ["g++", "-std=c++17", "-O1", "-ffp-contract=off", "-w", "-shared", "-fPIC", "-o", library, path], check=True
    )
    return ctypes.CDLL(str(library))


def launch(library, number, blocks, args):
    """Runs a kernel; pointers are given as their addresses."""
    values = [ctypes.c_void_p(x.data.ptr) if hasattr(x, "data") and hasattr(x, "inner") else x for x in args]
    copies = [x if isinstance(x, ctypes.c_void_p) else ctypes.create_string_buffer(x.tobytes(), 16) for x in values]
    pointers = (ctypes.c_void_p * len(copies))(*[ctypes.addressof(x) for x in copies])
    library.launch(getattr(library, f"call_{number}"), blocks, pointers)
