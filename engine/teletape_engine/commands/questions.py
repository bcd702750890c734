"""Questions to tapes and accumulators."""

from __future__ import annotations

from dataclasses import dataclass

from teletape_engine.commands.command import Command, Id, Input


@dataclass(frozen=True, slots=True)
class Gradient(Command):
    """Cotangents of `sources` from `targets`; an id in `outputs` for each source (null: not wanted under an id).

    `output_gradients`: a cotangent for each target, null for ones. `unconnected`: none or zero. `predicted`: the
    kinds (none,
    dense, slices) that the caller foresees; finding others is a StructureMismatchError. `retain_tape`: another question
    to the tape follows, so that one which is not persistent is not used up yet.
    """

    verb = "gradient"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    outputs: tuple[Id | None, ...]
    output_gradients: tuple[Input | None, ...] | None = None
    unconnected: str = "none"
    predicted: tuple[str, ...] | None = None
    retain_tape: bool = False


@dataclass(frozen=True, slots=True)
class Jacobian(Command):
    """The derivatives of each element of the one target: [*target, *source] for each source, dense.

    `max_bytes` bounds the memory of the cotangents on their way, and `chunk_size` how many go at once. `outputs`,
    `unconnected`, `predicted` and `retain_tape` as in gradient. `custom_gradients`: what custom.function made for the
    calls between.
    """

    verb = "jacobian"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    outputs: tuple[Id | None, ...]
    unconnected: str = "none"
    max_bytes: int | None = None
    chunk_size: int | None = None
    predicted: tuple[str, ...] | None = None
    retain_tape: bool = False
    custom_gradients: tuple[Id, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchJacobian(Command):
    """The Jacobian of each example: [b, *y, *x] for one target [b, *y] and one source [b, *x]; zeros if not connected.

    `unconnected`: the zeros have the target's dtype (none) or the source's (zero). Other fields as in jacobian.
    """

    verb = "batch_jacobian"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    outputs: tuple[Id | None, ...]
    unconnected: str = "none"
    max_bytes: int | None = None
    chunk_size: int | None = None
    retain_tape: bool = False
    custom_gradients: tuple[Id, ...] = ()


@dataclass(frozen=True, slots=True)
class Vjps(Command):
    """The gradients for k cotangents at once: [k, *source] for each source, dense.

    `output_gradients`: for each target a stack [k, *target], null for ones. Other fields as in jacobian.
    """

    verb = "vjps"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    outputs: tuple[Id | None, ...]
    output_gradients: tuple[Input | None, ...]
    unconnected: str = "none"
    max_bytes: int | None = None
    chunk_size: int | None = None
    predicted: tuple[str, ...] | None = None
    retain_tape: bool = False
    custom_gradients: tuple[Id, ...] = ()


@dataclass(frozen=True, slots=True)
class Hessian(Command):
    """The second derivatives of the targets' sum: a block [*source i, *source j] for each pair of sources.

    `outputs` and `predicted` run over j within i. Other fields as in jacobian.
    """

    verb = "hessian"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    outputs: tuple[Id | None, ...]
    unconnected: str = "none"
    max_bytes: int | None = None
    chunk_size: int | None = None
    predicted: tuple[str, ...] | None = None
    retain_tape: bool = False
    custom_gradients: tuple[Id, ...] = ()


@dataclass(frozen=True, slots=True)
class Hvp(Command):
    """The Hessian of the targets' sum times a vector: [*source] for each source, dense.

    `vectors`: the vector's part for each source. Other fields as in gradient.
    """

    verb = "hvp"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    vectors: tuple[Input, ...]
    outputs: tuple[Id | None, ...]
    unconnected: str = "none"
    predicted: tuple[str, ...] | None = None
    retain_tape: bool = False
    custom_gradients: tuple[Id, ...] = ()


@dataclass(frozen=True, slots=True)
class Jvp(Command):
    """The tangents of `targets`; an id in `outputs` for each (null: not wanted).

    `unconnected` and `predicted` as in `Gradient`.
    """

    verb = "jvp"
    accumulator: Id
    targets: tuple[Id, ...]
    outputs: tuple[Id | None, ...]
    unconnected: str = "none"
    predicted: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Explain(Command):
    """Why the gradient of the targets' sum is what it is for each source: reasons as facts. The tape stays as it is."""

    verb = "explain"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
