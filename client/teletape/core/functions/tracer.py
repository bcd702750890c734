"""The recorder of a trace: it infers specs, computes constants, and records each op as a step."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from teletape.core import environment
from teletape.core.functions.not_traceable import NotTraceable
from teletape.core.functions.step_log import StepLog, Symbol
from teletape.core.program import call_site
from teletape.core.program.tracebacks import with_op
from teletape.core.program.user_code import user_code
from teletape.core.sessions.session import with_functions
from teletape_engine import commands
from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.attributes import Attrs
from teletape_engine.catalogue.binding import Bound, bind
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.slices import SlicesValue, SparseGradient
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.functions.differentiated import cannot_be_inlined, gradient_of, tangents_of
from teletape_engine.functions.function import RUNNERS, assigned_inputs
from teletape_engine.recording.accumulators import Accumulator
from teletape_engine.recording.cotangents import Algebra, Operands
from teletape_engine.recording.custom import FunctionGradient, record_custom
from teletape_engine.recording.executor import evaluate
from teletape_engine.recording.recorder import Mode, Share
from teletape_engine.recording.spec_recorder import SpecRecorder
from teletape_engine.recording.values import Literal, Variable, new_uid
from teletape_engine.spec import STRING, DType, Spec, weak_dtype

_FOLDED: Final = 1 << 16  #: An op on constants is computed at once if it takes at most this many bytes.
_FULL: Final = 1 << 10  #: Zeros and ones of at most this many elements are constants.

#: Messages of ops about dtypes that they do not take, or not together; TensorFlow's graphs raise TypeError then.
_ABOUT_DTYPES: Final = re.compile(r"cannot compute |Value for attr 'T\w*' of ")

#: A call site as text, computed once: the body of an unrolled loop records the same ones again and again.
_call_site_text: Final = functools.lru_cache(4096)(call_site.shown_call_site)


def _traced_line() -> str | None:
    """Returns the line that is running in the function that is traced; None: only a library's code is running."""
    return _call_site_text(call_site.traced_caller())


class Tracer(SpecRecorder):
    """Records each op as a step of the function.

    Args:
        log: The log of the steps.
    """

    mode = Mode.WRITES

    def __init__(self, log: StepLog) -> None:
        super().__init__()
        self.log = log
        self.provenance.locate = call_site.caller if environment.call_sites() else None

    @property
    def bare(self) -> Algebra:  # type: ignore[override]  # every op is a step, whether a tape records it or not
        return Operands(self)

    @property
    def recorded(self) -> bool:
        """Always True: the ops of a tape's answers become steps too."""
        return True

    def _bind(self, op: Op, inputs: Sequence[Any], attrs: Attrs) -> tuple[Sequence[Any], Bound]:
        """Binds an op; inputs that do not fit raise the errors of TensorFlow's graph building.

        Raises:
            TypeError: Dtypes that do not fit.
            ValueError: Shapes that do not fit.
        """
        try:
            return super()._bind(op, inputs, attrs)
        except InvalidArgumentError as error:
            raise (TypeError if _ABOUT_DTYPES.match(error.message) else ValueError)(
                with_op(error.message, op.name) + user_code()
            ) from None

    def run(self, bound: Bound, inputs: Sequence[Any]) -> Any:
        op = bound.op
        arrays = [value.array if isinstance(value, Literal) else value.host for value in inputs]
        if bound.price <= _FOLDED and all(array is not None for array in arrays):
            folded = evaluate(bound, arrays)
            if bound.selects:
                return tuple([self.constant(array, op.name) for array in folded])
            return self.constant(folded, op.name)
        if op.dynamic:
            raise NotTraceable(
                f"uses {op.name!r}, whose result's shape depends on values",
                "tf.where with three arguments, or a mask that multiplies",
            )
        if any(spec.dtype == STRING for spec in (*bound.outputs, *bound.specs)):
            raise NotTraceable(
                f"calls {op.name!r} with strings, which are no values of a function's steps",
                "numbers in the function, such as positions in a table of strings",
            )
        results = tuple([self.log.new_symbol(spec, f"{op.name}:{i}") for i, spec in enumerate(bound.outputs)])
        where = _call_site_text(self.provenance.here())
        self.log.add(commands.Call(op.name, (), (), bound.attrs, where), inputs, results, where=_traced_line())
        return results if bound.selects else results[0]

    def constant(self, array: HostArray, name: str = "Const") -> Symbol:
        """Returns a constant of the function."""
        return Symbol(Spec.of(array.shape, array.dtype), None, f"{name}:0", array)

    def number(self, number: Literal, dtype: DType) -> Symbol:
        return self.constant(np.asarray(number.array, dtype))

    def full(self, spec: Spec, number: int) -> Symbol:
        if spec.size <= _FULL:
            return self.constant(np.full(spec.shape, number, spec.dtype))
        op, scalar = ops.fill, self.constant(np.asarray(number, spec.dtype))
        attrs = op.attrs({"shape": spec.shape})
        filled: Symbol = self.run(bind(op, (scalar.spec,), attrs), (scalar,))
        return filled

    def ct(self, value: Any) -> Any:
        if isinstance(value, SlicesValue):
            return SparseGradient(Operand(self, value.values), Operand(self, value.indices), value.dense)
        return Operand(self, value)

    def answer(self, ct: Any, spec: Spec) -> Any:
        if isinstance(ct, SparseGradient):
            return SlicesValue(ct.values.value, ct.indices.value, ct.dense)
        return ct.value.alias(new_uid())

    def bare_tangent(self, bound: Bound, shares: Sequence[Share], inputs: Sequence[Any], result: Any) -> Any:
        with self.context.only([], []):  # nothing records the tangent, but its ops are steps all the same
            return self.sum_of_shares(shares, inputs, result)

    def step(self, command: Any, functions: Sequence[Any], inputs: Sequence[Any]) -> list[Symbol]:
        """Records a command that takes functions as one step, and returns its results.

        Args:
            command: The command, with its functions.
            functions: Its functions.
            inputs: Symbols, and variables of the trace.
        """
        copies = [Variable(value.value, trainable=False) if isinstance(value, Variable) else value for value in inputs]
        inferred = RUNNERS[type(command)](SpecRecorder(), command, functions, copies)
        results = [self.log.new_symbol(_strong(result.spec), f"{command.verb}:0") for result in inferred]
        step_inputs = [self.number_of(value) if isinstance(value, Variable) else value for value in inputs]
        assigned = sorted(assigned_inputs(command, functions))
        self.log.add(command, step_inputs, results, [step_inputs[i] for i in assigned], _traced_line())
        for i in assigned:
            self.changed_variable(inputs[i])
        return results

    def whole(self, command: Any, functions: Sequence[Any], inputs: Sequence[Any]) -> list[Any] | None:
        """Records a loop or a condition as one step; for tapes it is one call, whose gradient runs it again.

        An accumulator gets the tangents of its results from a further step, which repeats it too.

        Raises:
            NotTraceable: It assigns to variables while a tape records or an accumulator follows it.
        """
        if not cannot_be_inlined(command, functions):
            return None
        fields = {name: getattr(command, name) for name in command.__dataclass_fields__}
        command = with_functions(type(command), functions, **fields)
        if not self.context.active:
            return self.step(command, functions, inputs)
        assigned = assigned_inputs(command, functions)
        values = [
            value if i in assigned else self.read(value) if isinstance(value, Variable) else self.as_value(value)
            for i, value in enumerate(inputs)
        ]
        primals = [i for i, value in enumerate(values) if i not in assigned and value.spec.differentiable]
        accumulators = [each for each in self.context.accumulators if each.mask([values[i] for i in primals])]
        with self.context.only([], []):
            results = self.step(command, functions, values)
        followed = [i for i in primals if any(values[i].uid in tape.tracked for tape in self.context.tapes)]
        outputs = [result for result in results if result.spec.differentiable]
        if not (followed or accumulators) or not outputs:
            return list(results)
        if assigned:
            recording, name = ("a tape records", "tape") if followed else ("an accumulator follows", "accumulator")
            raise NotTraceable(f"assigns to a variable in a loop or a branch that {recording}", f"the {name} inside it")
        if followed:
            self._note_whole(command, values, followed, results, outputs)
        for accumulator in accumulators:
            self._push_whole(accumulator, command, values, primals, results)
        return list(results)

    def _note_whole(
        self,
        command: Any,
        values: Sequence[Any],
        followed: Sequence[int],
        results: Sequence[Any],
        outputs: Sequence[Any],
    ) -> None:
        """Records a command on the tapes as one call of those inputs that they track."""
        gradient = gradient_of(command, len(values), followed, [result.spec.differentiable for result in results])
        back = FunctionGradient(gradient, [True] * len(followed))
        record_custom(
            self.context.tapes,
            [values[i] for i in followed],
            outputs,
            tag=None,
            label=command.verb,
            gradient=(back, *values),
            where=self.provenance.here(),
        )

    def _push_whole(
        self,
        accumulator: Accumulator,
        command: Any,
        values: Sequence[Any],
        primals: Sequence[int],
        results: Sequence[Any],
    ) -> None:
        """Computes a command's tangents for an accumulator; outer tapes and accumulators record the computation."""
        tangents = {i: accumulator.tangent(values[i]) for i in primals}
        inputs = [i for i in primals if tangents[i] is not None]
        function = tangents_of(command, len(values), inputs, [result.spec.differentiable for result in results])
        outputs = [result for result in results if result.spec.differentiable]
        with self.context.only(*self.context.outside(accumulator)):
            zeros = [self.full(result.spec, 0) for result in outputs]
            pushed = function.run(self, [*zeros, *values, *(tangents[i] for i in inputs)])
        for result, tangent in zip(outputs, pushed, strict=True):
            accumulator.follow(result, tangent)

    def decide(self, value: Any) -> int:
        """Raises: no value is known in a trace.

        Raises:
            NotTraceable: Always.
        """
        raise NotTraceable("differentiates a loop or a condition inside the function", "the tape outside the function")

    def note_identity(self, before: Any, after: Any) -> None:
        """Records on active tapes and accumulators that `after` equals `before`: an identity that is no step."""
        plan = bind(ops.identity, (before.spec,)).plan(1)
        for tape in self.context.tapes:
            if before.uid in tape.tracked:
                tape.note(plan, (before.uid,), after.uid, (), self.provenance.here())
        for accumulator in self.context.accumulators:
            if (tangent := accumulator.tangent(before)) is not None:
                accumulator.follow(after, tangent)

    # ----------------------------------------------------------------------------------------------------- variables
    def local_variable(self, variable: Variable) -> Variable:
        """Returns a variable's replacement in the trace: for tapes the same variable, with a symbol as its value."""
        log = self.log
        local = log.variables.get(variable.uid)
        if local is None:
            name = variable.name or "Variable:0"
            symbol = log.capture("variable", variable, variable.spec, name, variable.uid)
            local = Variable(symbol, trainable=variable.trainable, name=variable.name, uid=variable.uid)
            local.owner = variable.owner
            log.variables[variable.uid] = local
            log.stale.add(variable.uid)
        return local

    def argument_variable(self, variable: Variable) -> tuple[Variable, Symbol]:
        """Returns a new variable of the trace for a variable among the arguments, and the argument's symbol."""
        log = self.log
        symbol = log.new_symbol(variable.spec, variable.name or "Variable:0")
        local = Variable(symbol, trainable=variable.trainable, name=variable.name)
        log.variables[local.uid] = local
        log.stale.add(local.uid)
        log.note(local.uid, symbol)
        return local, symbol

    def number_of(self, variable: Variable) -> int:
        """Returns the number of the function's input for a variable."""
        self.local_variable(variable)
        symbol = self.log.symbol_of(variable.uid)
        assert symbol is not None
        assert symbol.number is not None
        return symbol.number

    def read(self, variable: Variable) -> Any:
        local = self.local_variable(variable)
        if variable.uid in self.log.stale:
            self.log.stale.discard(variable.uid)
            local.value = self.log.new_symbol(local.spec, local.value.name)
            self.log.add(None, (self.number_of(variable),), (local.value,), where=_traced_line())
        return super().read(local)

    def assign(self, variable: Variable, value: Any, mode: str = "set", *indices: Any) -> None:
        if isinstance(value, Literal):
            value = self.number(value, weak_dtype(value.spec, variable.spec.dtype))
        local, number = self.local_variable(variable), self.number_of(variable)
        command = commands.Assign("", value, mode, *[None] * len(indices))
        self.log.add(command, (number, value, *indices), (), (number,), _traced_line())
        self.changed_variable(local)

    def changed_variable(self, local: Variable) -> None:
        """Notes that a step has assigned to a variable: it must be read before its next use."""
        local.version += 1
        self.log.stale.add(local.uid)


def _strong(spec: Any) -> Spec:
    """Returns the spec of a recorded result, also of a Python number."""
    return spec if isinstance(spec, Spec) else Spec.of((), weak_dtype(spec, None))
