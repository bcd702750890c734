"""From the tree of an expression to a function: steps in the order in which Python would compute them.

Long because each rule of the grammar has a method, and all of them add to the same names and steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from lark import Token, Transformer_NonRecursive, Tree, v_args
from lark.tree import Meta

from teletape_engine.catalogue.op import Op
from teletape_engine.errors import BadAttributeError, InvalidArgumentError
from teletape_engine.spec import DTYPES
from teletape_engine.suggestions import did_you_mean, nearest
from teletape_server.expressions.compiled import Compiled
from teletape_server.expressions.faults import Place, fault
from teletape_server.expressions.folding import SIGNS, check_size, folded, folded_numbers
from teletape_server.expressions.functions import (
    FORMULAS,
    OPERATORS,
    PREFIXES,
    PROPERTIES,
    names,
    op_named,
    takes_integers,
)
from teletape_server.expressions.operands import (
    CONSTANTS,
    Computed,
    Constant,
    List,
    Name,
    Nothing,
    Number,
    Operand,
    Text,
    is_constant,
    is_number,
    is_written,
    plain,
    tensor,
)


class _Attribute(NamedTuple):
    """A named argument of a call."""

    name: Token
    value: Operand


class _Subscript(NamedTuple):
    """A member of an index: an integer, a [start, stop, step] triple, or "..."."""

    value: Any


@v_args(meta=True)
class Compiler(Transformer_NonRecursive):  # type: ignore[type-arg]  # of lark: its leaves and results are of any type
    """Compiles a tree from its leaves up; each method takes the place of a node and its compiled parts.

    Args:
        text: The text, for places.
        taken: Names in the text, which intermediate results do not get.
        dtype: Of numbers that meet no array.
    """

    def __init__(self, text: str, taken: set[str], dtype: str) -> None:
        super().__init__(visit_tokens=False)
        self._text = text
        self._taken = taken
        self._dtype = dtype
        self._scope: dict[str, str | Constant] = {}  # a name in the text: the value that it names now
        self._constants: dict[str, tuple[Meta, Operand]] = {}  # results that are steps only if no line uses them
        self._inputs: dict[str, int] = {}  # and the offset of its first use
        self._values: dict[str, Operand] = {}
        self._integer_inputs: set[str] = set()
        self._steps: list[dict[str, Any]] = []
        self._results: list[str] = []
        self._used: set[str] = set()
        self._counts: Counter[str] = Counter()  # of numbers in names that `_free` has tried

    # ----------------------------------------------------------------------------------------------------- statements
    def start(self, _: Meta, __: Sequence[Any]) -> Compiled:
        outputs = [name for name in self._results if name not in self._used]
        if self._results and self._results[-1] not in outputs:
            outputs.append(self._results[-1])
        for name in outputs:
            if name in self._constants:
                meta, value = self._constants[name]
                self._identity(meta, value, name)
        values = {
            name: self._tensor(value, integers=name in self._integer_inputs) for name, value in self._values.items()
        }
        return Compiled(list(self._inputs), values, self._steps, outputs or list(self._inputs)[-1:])

    def assignment(self, meta: Meta, parts: Sequence[Any]) -> None:
        token, value = parts
        name = str(token)
        if name.startswith("_"):
            raise fault(self._place(token), f"a name begins with a letter, found {name!r}")
        is_input = name not in self._scope and (name not in self._inputs or name not in self._values)
        if is_input and is_written(value):
            self._check_list(meta, value)
            self._inputs.setdefault(name, token.start_pos)
            self._values[name] = value
            return
        self._name(meta, value, name)

    def result(self, meta: Meta, parts: Sequence[Any]) -> None:
        [value] = parts
        if isinstance(value, Name) and value.step is None:
            self._results = [name for name in self._results if name != value.name] + [value.name]
            self._used.discard(value.name)
        else:
            self._name(meta, value, "result")

    def _name(self, meta: Meta, value: Operand, name: str) -> None:
        """Gives a name to a value: to a constant, to the result of its last step, or of a copy."""
        named = name if name not in self._inputs and name not in self._results else self._free(name)
        if is_constant(value):
            self._check_list(meta, value)
            constant = Computed(value) if is_written(value) else value  # type: ignore[arg-type]  # a number or a list
            self._constants[named] = meta, constant
            self._scope[name] = Constant(named, constant)
        else:
            if isinstance(value, List):
                value = self._step(meta, op_named("stack", 1), value.members, {})
            if isinstance(value, Name) and value.step is not None:
                self._steps[value.step]["outputs"][value.output] = named
            else:
                self._identity(meta, value, named)
            self._scope[name] = named
        self._results.append(named)

    def _identity(self, meta: Meta, value: Operand, name: str) -> None:
        """Adds a step whose result is the value, under that name."""
        self._step(meta, op_named("identity", 1), [value], {})
        self._steps[-1]["outputs"] = [name]

    # ---------------------------------------------------------------------------------------------------- expressions
    def number(self, meta: Meta, parts: Sequence[Any]) -> Number:
        text = parts[0].replace("_", "")
        number = int(text) if text.isdigit() else float(text)
        check_size(self._place(meta), number)
        return number

    def text(self, _: Meta, parts: Sequence[Any]) -> Text:
        return Text(parts[0][1:-1])

    def name(self, meta: Meta, parts: Sequence[Any]) -> Operand:
        name = str(parts[0])
        scoped = self._scope.get(name)
        if isinstance(scoped, Constant):
            self._used.add(scoped.name)
            return scoped.value
        if scoped is not None:
            return Name(scoped)
        if name in self._inputs:
            return Name(name)
        if name in CONSTANTS:
            return CONSTANTS[name]
        if name in names():
            raise fault(self._place(meta), f"{name} is a function: write {name}(…), or give {name} a value")
        if name.startswith("_"):
            raise fault(self._place(meta), f"a name begins with a letter, found {name!r}")
        self._inputs[name] = meta.start_pos
        return Name(name)

    def list(self, _: Meta, parts: Sequence[Any]) -> List:
        return List(tuple(part for part in parts if part is not None))

    def group(self, _: Meta, parts: Sequence[Any]) -> Operand:
        operand: Operand = parts[0]
        return operand

    def binary(self, meta: Meta, parts: Sequence[Any]) -> Operand:
        left, sign, right = parts
        if is_number(left) and is_number(right) and str(sign) in SIGNS:
            return folded_numbers(self._place(meta), str(sign), left, right)
        return self._call(meta, op_named(OPERATORS[str(sign)], 2), [left, right], {})

    def unary(self, meta: Meta, parts: Sequence[Any]) -> Operand:
        sign, operand = parts
        if sign == "+" or (is_number(operand) and sign == "-"):
            result: Operand = operand if sign == "+" else -operand
            return result
        return self._call(meta, op_named(PREFIXES[str(sign)], 1), [operand], {})

    def property(self, meta: Meta, parts: Sequence[Any]) -> Operand:
        operand, name = parts
        if name not in PROPERTIES:
            advice = f"write .{name}()" if name in names() else ".T transposes a matrix"
            raise fault(self._place(name), f"there is no .{name}; {advice}", expected=[".T"])
        return self._call(meta, op_named(PROPERTIES[name], 1), [operand], {})

    def method(self, meta: Meta, parts: Sequence[Any]) -> Operand:
        """As in NumPy, x.sum(axis=0) is sum(x, axis=0)."""
        operand, token, arguments = parts
        return self.call(meta, [token, [operand, *(arguments or ())]])

    def conditional(self, meta: Meta, parts: Sequence[Any]) -> Operand:
        _, if_, _, else_, _ = parts
        chosen, condition, other = (
            self._text[start:end].strip()
            for start, end in (
                (meta.start_pos, if_.start_pos),
                (if_.end_pos, else_.start_pos),
                (else_.end_pos, meta.end_pos),
            )
        )
        raise fault(
            self._place(meta),
            f"write where({condition}, {chosen}, {other}), which chooses element by element",
            suggestions=[f"where({condition}, {chosen}, {other})"],
        )

    def call(self, meta: Meta, parts: Sequence[Any]) -> Operand:
        token, arguments = parts[0], () if parts[1] is None else parts[1]
        positional = [argument for argument in arguments if not isinstance(argument, _Attribute)]
        named = [argument for argument in arguments if isinstance(argument, _Attribute)]
        tensors = [argument for argument in positional if not isinstance(argument, Text | Nothing)]
        op = op_named(str(token), len(tensors))
        if op is None:
            formula = FORMULAS.get(str(token))
            hint = f"write {formula}" if formula else did_you_mean(token, names())
            message = f"there is no function {token}; {hint}" if hint else f"there is no function {token}"
            raise fault(self._place(token), message, found=str(token), suggestions=nearest(token, names()))
        if op.variadic:
            if len(tensors) == 1 and isinstance(tensors[0], List):
                tensors = [*tensors[0].members]
            rest: list[Operand] = [argument for argument in positional if isinstance(argument, Text | Nothing)]
        else:
            tensors, rest = positional[: len(op.inputs)], positional[len(op.inputs) :]
        attributes = self._attributes(meta, op, rest, named)
        if not op.variadic and len(tensors) != len(op.inputs):
            takes = ", ".join(op.inputs) or "no tensor"
            wanted = f"{token} takes {takes}"
            raise fault(self._place(meta), f"{wanted}; found {len(tensors)} of {len(op.inputs)}", expected=[*op.inputs])
        return self._call(meta, op, tensors, attributes)

    def arguments(self, _: Meta, parts: Sequence[Any]) -> Sequence[Any]:
        return [part for part in parts if part is not None]

    def attribute(self, _: Meta, parts: Sequence[Any]) -> _Attribute:
        return _Attribute(*parts)

    def _attributes(self, meta: Meta, op: Op, rest: Sequence[Operand], named: Sequence[_Attribute]) -> dict[str, Any]:
        """Returns the attributes of a call: the named ones, and further positional ones in their order."""
        known = [attr.name for attr in op.schema.attrs]
        if len(rest) > len(known):
            takes = ", ".join((*op.inputs, *known)) or "nothing"
            raise fault(
                self._place(meta), f"too many arguments: {op.name} takes {takes}", expected=[*op.inputs, *known]
            )
        values: dict[str, Operand] = dict(zip(known, rest, strict=False))
        for name, value in named:
            if name not in known:
                hints = filter(None, (did_you_mean(name, known), f"it takes: {', '.join(known) or 'none'}"))
                message = f"{op.name} has no {name}; {'; '.join(hints)}"
                suggestions = nearest(name, known)
                raise fault(self._place(name), message, found=str(name), expected=known, suggestions=suggestions)
            if name in values:
                raise fault(self._place(name), f"{name} has two values")
            values[str(name)] = value
        attributes: dict[str, Any] = {}
        if self._dtype != "float32" and "dtype" not in values and _makes_floats(op):
            attributes["dtype"] = self._dtype
        for attribute, value in values.items():
            try:
                attributes[attribute] = plain(value)
            except TypeError:
                message = f"{attribute} of {op.name} must be written as a number, a list or a text, not computed"
                raise fault(self._place(meta), message) from None
        try:
            op.attrs(attributes)
        except (BadAttributeError, InvalidArgumentError) as error:
            raise fault(self._place(meta), error.message) from None
        return attributes

    # ------------------------------------------------------------------------------------------------------- elements
    def element(self, meta: Meta, parts: Sequence[Any]) -> Operand:
        operand, subscripts = parts
        index = [subscript.value for subscript in subscripts]
        if isinstance(operand, List) and not is_constant(operand) and index[0] in range(len(operand.members)):
            member: Operand = operand.members[index[0]]
            if len(index) == 1:
                return member
            operand, index = member, index[1:]
        return self._call(meta, op_named("strided_slice", 1), [operand], {"index": index})

    def subscripts(self, _: Meta, parts: Sequence[Any]) -> Sequence[Any]:
        return parts

    def index(self, meta: Meta, parts: Sequence[Any]) -> _Subscript:
        [value] = parts
        return _Subscript(None if isinstance(value, Nothing) else self._integer(meta, value))

    def slice(self, meta: Meta, parts: Sequence[Any]) -> _Subscript:
        bounds: list[Any] = [None]
        for part in parts:
            if isinstance(part, Token):
                bounds.append(None)
            elif part is not None:
                bounds[-1] = self._integer(meta, part)
        return _Subscript([*bounds, None, None][:3])

    def dots(self, _: Meta, __: Sequence[Any]) -> _Subscript:
        return _Subscript("...")

    def _integer(self, meta: Meta, value: Operand) -> int:
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise fault(self._place(meta), "an index is a whole number; gather(x, indices) takes computed ones")

    # ---------------------------------------------------------------------------------------------------------- steps
    def _call(self, meta: Meta, op: Op | None, operands: Sequence[Operand], attributes: dict[str, Any]) -> Operand:
        """Returns the result of an op: of a new step, or of constants at once."""
        assert op is not None
        constant = folded(op, operands, attributes) if all(map(is_constant, operands)) else None
        return self._step(meta, op, operands, attributes) if constant is None else constant

    def _step(self, meta: Meta, op: Op | None, operands: Sequence[Operand], attributes: dict[str, Any]) -> Operand:
        """Adds a step, and returns its result; several as a list."""
        assert op is not None
        has_names = any(not is_constant(operand) for operand in operands)
        inputs = [
            self._input(meta, operand, integers=takes_integers(op, i), has_names=has_names)
            for i, operand in enumerate(operands)
        ]
        names = [self._free(op.name) for _ in op.results]
        step: dict[str, Any] = {"op": op.name, "inputs": inputs, "outputs": names}
        if attributes:
            step["attrs"] = attributes
        step["where"] = str(self._place(meta))
        self._steps.append(step)
        results = tuple([Name(name, len(self._steps) - 1, output) for output, name in enumerate(names)])
        return results[0] if len(results) == 1 else List(results)

    def _input(self, meta: Meta, operand: Operand, *, integers: bool, has_names: bool) -> Any:
        """Returns an input of a step; numbers next to names take their dtype."""
        if isinstance(operand, Text | Nothing):
            raise fault(self._place(meta), "a tensor is expected here, found a text or none")
        if isinstance(operand, List) and not is_constant(operand):
            operand = self._step(meta, op_named("stack", 1), operand.members, {})
        if isinstance(operand, Name):
            if integers:
                self._integer_inputs.add(operand.name)
            self._used.add(operand.name)
            return operand.name
        self._check_list(meta, operand)
        if not has_names or integers:
            return self._tensor(operand, integers=integers)
        numbers = plain(operand)
        return {"number": numbers} if isinstance(numbers, str) else numbers

    def _tensor(self, operand: Operand, *, integers: bool) -> dict[str, Any]:
        return tensor(operand, integers=integers, dtype=self._dtype)

    def _check_list(self, meta: Meta, operand: Operand) -> None:
        try:
            self._tensor(operand, integers=False)
        except ValueError as error:
            raise fault(self._place(meta), str(error)) from None

    def _free(self, name: str) -> str:
        """Returns the name with the first number that is not taken."""
        while True:
            self._counts[name] += 1
            free = f"{name}_{self._counts[name]}"
            if free not in self._taken:
                self._taken.add(free)
                return free

    def _place(self, part: Meta | Token) -> Place:
        start = part.start_pos or 0
        return Place(self._text, start, start if part.end_pos is None else part.end_pos)


def _makes_floats(op: Op) -> bool:
    """Whether the op's result is float32 unless a dtype is named."""
    return any(attr.name == "dtype" and attr.default is DTYPES["float32"] for attr in op.schema.attrs)


def compiled(tree: Tree[Any], text: str, taken: set[str], dtype: str) -> Compiled:
    """Returns the function that a tree means.

    Args:
        tree: From the parser.
        text: The text, for the places in problems.
        taken: Names in the text, which intermediate results do not get.
        dtype: Of numbers that meet no array.
    """
    function: Compiled = Compiler(text, taken, dtype).transform(tree)
    return function
