"""The CUDA source of a kernel, from its structure alone: shapes, addresses and numbers are its parameters."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from teletape_engine.plans.gpu.codes import IN_REGISTER, PRELUDE, STORED, code_of, converted, identity

THREADS: Final = 256  #: Of a block.
MAP: Final = "map"  #: Every element by itself.
ROWS: Final = "rows"  #: A reduction in which a block computes one element, or a part of one.
COLUMNS: Final = "columns"  #: A reduction in which a thread computes one element.
NAME: Final = "teletape_plan"
_MOST_KERNELS: Final = 1024  #: Structures whose kernels are remembered.


class KernelOperand(NamedTuple):
    """What a kernel reads or writes.

    Attributes:
        char: The dtype's.
        steps: Along each axis, in elements: 0, 1, or None if it is a parameter. None in place of all: it is a number.
    """

    char: str
    steps: tuple[int | None, ...] | None


class Line(NamedTuple):
    """What a register holds.

    Attributes:
        name: Of the function; `load`: an operand's element.
        inputs: Numbers of earlier registers; of `load` that of the operand.
        char: The dtype's.
    """

    name: str
    inputs: tuple[int, ...]
    char: str


class Total(NamedTuple):
    """A reduction of a register.

    Attributes:
        name: Of the function.
        register: Its number.
        char: The dtype in which it is computed.
        operand: Where the result goes.
    """

    name: str
    register: int
    char: str
    operand: int


class KernelStructure(NamedTuple):
    """A kernel but for shapes, addresses and numbers.

    Attributes:
        mode: See above.
        integer: The C type of indices.
        remaining: The number of axes of the result.
        reduced: The number of axes that are reduced.
        operands: In the order of the parameters.
        lines: In order.
        stores: Registers that are written, and the operands.
        totals: The reductions.
        lanes: How many elements a thread of `MAP` loads before it computes: then it waits for memory once.
    """

    mode: str
    integer: str
    remaining: int
    reduced: int
    operands: tuple[KernelOperand, ...]
    lines: tuple[Line, ...]
    stores: tuple[tuple[int, int], ...]
    totals: tuple[Total, ...]
    lanes: int


_sources: Final[dict[KernelStructure, str]] = {}


def source_of(structure: KernelStructure) -> str:
    """The source; the same text for the same structure."""
    source = _sources.get(structure)
    if source is None:
        if len(_sources) >= _MOST_KERNELS:
            _sources.clear()
        source = _sources[structure] = _KernelWriter(structure).source()
    return source


class Kernels:
    """Compiled kernels by their structure.

    Args:
        xp: CuPy.
    """

    def __init__(self, xp: Any) -> None:
        self._xp = xp
        self._kernels: dict[KernelStructure, Any] = {}

    def kernel(self, structure: KernelStructure) -> Any:
        """The kernel; it is compiled when it is first called."""
        kernel = self._kernels.get(structure)
        if kernel is None:
            if len(self._kernels) >= _MOST_KERNELS:
                self._kernels.clear()
            kernel = self._kernels[structure] = self._xp.RawKernel(source_of(structure), NAME)
        return kernel


class _KernelWriter:
    """Writes one kernel.

    Its parameters are the operands, each with the steps that are parameters; then the number of results, that of the
    elements of each (of a part, in `ROWS`: and of parts), and the lengths of all axes.
    """

    def __init__(self, structure: KernelStructure) -> None:
        self._structure = structure
        self._written = {operand for _, operand in structure.stores} | {total.operand for total in structure.totals}

    def source(self) -> str:
        """The whole text."""
        structure = self._structure
        bodies = {MAP: self._map, COLUMNS: self._columns, ROWS: self._rows}
        body = "\n".join(f"  {line}" for line in bodies[structure.mode]())
        parameters = ", ".join(self._parameters())
        return f'{PRELUDE}extern "C" __global__ void {NAME}({parameters}) {{\n{body}\n}}\n'

    def _parameters(self) -> list[str]:
        structure = self._structure
        parameters = []
        for number, operand in enumerate(structure.operands):
            stored = STORED[operand.char]
            if operand.steps is None:
                parameters.append(f"const {stored} p{number}")
                continue
            parameters.append(f"{stored}* p{number}" if number in self._written else f"const {stored}* p{number}")
            parameters += [f"const {structure.integer} s{number}_{a}" for a, n in enumerate(operand.steps) if n is None]
        parameters.append(f"const {structure.integer} count")
        if structure.mode != MAP:
            parameters.append(f"const {structure.integer} length")
        if structure.mode == ROWS:
            parameters += [f"const {structure.integer} part", f"const {structure.integer} parts"]
        axes = structure.remaining + structure.reduced
        return [*parameters, *[f"const {structure.integer} n{axis}" for axis in range(axes)]]

    def _map(self) -> list[str]:
        structure = self._structure
        body = [*self._indices("at", 0, structure.remaining), *self._elementwise()]
        if structure.lanes == 1:
            return self._each_result(body)
        index, lanes = structure.integer, structure.lanes
        tile = THREADS * lanes
        loads = [(number, line) for number, line in enumerate(structure.lines) if line.name == "load"]
        every_lane = ["#pragma unroll", f"for (int lane = 0; lane < {lanes}; ++lane) {{"]
        here = [f"const {index} here = at + lane * {THREADS};", *self._indices("here", 0, structure.remaining)]
        wide = [
            *[f"{IN_REGISTER[line.char]} loaded{number}[{lanes}];" for number, line in loads],
            *every_lane,
            *[f"  {line}" for line in here],
            *[f"  loaded{number}[lane] = {self._loaded(line)};" for number, line in loads],
            "}",
            *every_lane,
            *[f"  {line}" for line in (*here, *self._elementwise(loaded=True))],
            "}",
        ]
        return [
            f"{index} at = ({index})blockIdx.x * {tile} + threadIdx.x;",
            f"for (; at + {tile - THREADS} < count; at += ({index})gridDim.x * {tile}) {{",
            *[f"  {line}" for line in wide],
            "}",
            f"for (; at < count; at += {THREADS}) {{",
            *[f"  {line}" for line in body],
            "}",
        ]

    def _columns(self) -> list[str]:
        structure = self._structure
        inner = [
            *self._indices("k", structure.remaining, structure.reduced),
            *self._elementwise(),
            *[self._combined(number, f"v{total.register}") for number, total in enumerate(structure.totals)],
        ]
        return self._each_result(
            [
                *self._indices("at", 0, structure.remaining),
                *self._beginnings(),
                "#pragma unroll 4",
                f"for ({structure.integer} k = 0; k < length; ++k) {{",
                *[f"  {line}" for line in inner],
                "}",
                *self._results(),
            ]
        )

    def _rows(self) -> list[str]:
        structure = self._structure
        lines = [
            f"const {structure.integer} at = blockIdx.x / parts;",
            f"const {structure.integer} slice = blockIdx.x % parts;",
            f"const {structure.integer} begin = slice * part;",
            f"const {structure.integer} end = length - begin < part ? length : begin + part;",
            *self._indices("at", 0, structure.remaining),
            *self._beginnings(),
            "#pragma unroll 4",
            f"for ({structure.integer} k = begin + threadIdx.x; k < end; k += {THREADS}) {{",
        ]
        inner = [
            *self._indices("k", structure.remaining, structure.reduced),
            *self._elementwise(),
            *[self._combined(number, f"v{total.register}") for number, total in enumerate(structure.totals)],
        ]
        lines += [*[f"  {line}" for line in inner], "}"]
        for number, total in enumerate(structure.totals):
            register = IN_REGISTER[total.char]
            lines += [
                f"__shared__ {register} shared{number}[{THREADS}];",
                f"shared{number}[threadIdx.x] = t{number};",
            ]
        lines += ["__syncthreads();", f"for (int half = {THREADS // 2}; half; half /= 2) {{"]
        lines.append("  if (threadIdx.x < half) {")
        for number in range(len(structure.totals)):
            lines.append(f"    t{number} = shared{number}[threadIdx.x];")
            lines.append(f"    {self._combined(number, f'shared{number}[threadIdx.x + half]')}")
            lines.append(f"    shared{number}[threadIdx.x] = t{number};")
        lines += ["  }", "  __syncthreads();", "}", "if (threadIdx.x == 0) {"]
        lines += [f"  {line}" for line in self._results()]
        return [*lines, "}"]

    # ------------------------------------------------------------------------------------------------------- elements
    def _each_result(self, body: list[str]) -> list[str]:
        index = self._structure.integer
        start, step = f"({index})blockIdx.x * {THREADS} + threadIdx.x", f"({index})gridDim.x * {THREADS}"
        return [f"for ({index} at = {start}; at < count; at += {step}) {{", *[f"  {line}" for line in body], "}"]

    def _indices(self, flat: str, first: int, axes: int) -> list[str]:
        """The index along each axis from the flat one, the last axis first."""
        index = self._structure.integer
        if axes == 0:
            return []
        if axes == 1:
            return [f"const {index} i{first} = {flat};"]
        lines = [f"{index} left{first} = {flat};"]
        for axis in range(first + axes - 1, first, -1):
            lines += [f"const {index} i{axis} = left{first} % n{axis};", f"left{first} /= n{axis};"]
        return [*lines, f"const {index} i{first} = left{first};"]

    def _place(self, number: int) -> str:
        """An operand's element."""
        terms = []
        steps = self._structure.operands[number].steps
        assert steps is not None
        for axis, step in enumerate(steps):
            if step != 0:
                terms.append(f"i{axis}" if step == 1 else f"i{axis} * s{number}_{axis}")
        return f"p{number}[{' + '.join(terms) or 0}]"

    def _loaded(self, line: Line) -> str:
        """An operand's element, as a register has it."""
        (number,) = line.inputs
        operand = self._structure.operands[number]
        code = f"p{number}" if operand.steps is None else self._place(number)
        return f"widened({code})" if operand.char == "e" else code

    def _elementwise(self, *, loaded: bool = False) -> list[str]:
        """The lines, and what they store; `loaded`: the operands' elements are in arrays of registers."""
        structure = self._structure
        lines = []
        for number, line in enumerate(structure.lines):
            if line.name == "load":
                code = f"loaded{number}[lane]" if loaded else self._loaded(line)
            else:
                chars = (*[structure.lines[register].char for register in line.inputs], line.char)
                template = code_of(line.name, chars)
                assert template is not None
                code = converted(template.format(*[f"v{register}" for register in line.inputs]), line.char)
            lines.append(f"const {IN_REGISTER[line.char]} v{number} = {code};")
        return [*lines, *[self._stored(operand, f"v{register}") for register, operand in structure.stores]]

    def _stored(self, operand: int, code: str) -> str:
        if self._structure.operands[operand].char == "e":
            code = f"narrowed({code})"
        return f"{self._place(operand)} = {code};"

    # ------------------------------------------------------------------------------------------------------ reductions
    def _beginnings(self) -> list[str]:
        return [
            f"{IN_REGISTER[total.char]} t{number} = {identity(total.name, total.char)};"
            for number, total in enumerate(self._structure.totals)
        ]

    def _combined(self, number: int, code: str) -> str:
        total = self._structure.totals[number]
        template = code_of(total.name, (total.char,) * 3)
        assert template is not None
        return f"{{ const {IN_REGISTER[total.char]} x = {code}; t{number} = {template.format(f't{number}', 'x')}; }}"

    def _results(self) -> list[str]:
        lines = []
        for number, total in enumerate(self._structure.totals):
            place = self._place(total.operand)
            if self._structure.mode == ROWS:  # the parts of one result lie side by side
                place = place[:-1] + " + slice]"
            char = self._structure.operands[total.operand].char
            code = f"narrowed(t{number})" if char == "e" else f"({STORED[char]})t{number}"
            lines.append(f"{place} = {code};")
        return lines
