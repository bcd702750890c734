"""Looking at a tape: its picture, the bytes behind it, and whether its gradients are right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from teletape.derivatives.arguments import differentiated, followed, parts
from teletape.errors import GradientMismatch
from teletape.sessions import session
from teletape.tensors import nest
from teletape_engine.derivatives.finite_differences import ENTRIES, Report, Settings
from teletape_engine.diagram import dot, graphviz
from teletape_engine.diagram.facts import MAX_NODES
from teletape_engine.errors import TeletapeError
from teletape_engine.recording.tape import Tape

_DISPLAYED = 300  #: Nodes of the picture that a notebook shows by itself.


class TapeMemory(NamedTuple):
    """The bytes behind a tape, each buffer once.

    Attributes:
        ops: Calls that it has recorded.
        bytes: Of the arrays that it keeps to answer.
        frees: What its end would free of them, and of variables that it alone keeps alive: what nobody else holds.
    """

    ops: int
    bytes: int
    frees: int

    def __str__(self) -> str:
        return f"{self.ops:,} ops keep {dot.bytes_text(self.bytes)}; ending the tape frees {dot.bytes_text(self.frees)}"


class TapeGraph:
    """A tape as a picture; a notebook shows it.

    Attributes:
        json: The facts: nodes, edges and explanations (docs/graph.md).
        dot: The same as DOT, Graphviz's language.
    """

    def __init__(self, facts: Mapping[str, Any], draw: Callable[[], str] | None = None) -> None:
        self.json = dict(facts)
        self.dot = dot.dot(facts)
        self._draw = draw
        self._svg: str | None = None

    @property
    def svg(self) -> str:
        """The picture, laid out by Graphviz: here if it is installed, else by the tape's server.

        Raises:
            teletape_engine.diagram.graphviz.NoLayoutError: Graphviz is installed on neither side.
            teletape_engine.diagram.graphviz.LayoutFailedError: The layout took too long.
        """
        if self._svg is None:
            self._svg = graphviz.svg(self.dot) if self._draw is None or graphviz.available() else self._draw()
        return self._svg

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        try:
            return {"text/plain": repr(self), "image/svg+xml": self.svg}
        except TeletapeError as error:
            return {"text/plain": f"{self!r}\n({error})"}

    def __repr__(self) -> str:
        told = self.json["folded"] or f"{self.json['ops']:,} ops"
        kept = "" if self.json["bytes"] is None else f", {dot.bytes_text(self.json['bytes'])} kept"
        cuts = [f"\n  {one['message']}" for one in self.json["explanations"] if one["drawn"] is not None]
        return f"<TapeGraph: {told}{kept}>" + "".join(cuts)


class Looks:
    """The part of a tape that is looked at."""

    _tape: Tape | None
    _past: Tape | None

    def _of_session(self) -> session.Session:
        """Whose tape it is; see `GradientTape`."""
        raise NotImplementedError  # pragma: no cover - abstract

    def graph(self, target: Any = None, sources: Any = None, *, nodes: int = MAX_NODES) -> TapeGraph:
        """The tape as a picture: what it watched, the calls it recorded, and what each keeps.

        It may be asked while the tape records, and after it has answered.

        Args:
            target: With `sources`: the path of the gradient is marked, and what cuts it where there is none. A tensor
                or variable, or a nested structure of them.
            sources: The same.
            nodes: At most so many; a longer tape is folded: what repeats is drawn as one, then neighbours.

        Raises:
            RuntimeError: The tape was never entered.
            TypeError: What is no tensor among targets or sources; only one of the two.
        """
        tape = self._looked_at("draw")
        if (target is None) is not (sources is None):
            raise TypeError("graph: a target and sources belong together: give both, or neither")
        targets = [] if target is None else parts([differentiated(one, "target") for one in nest.flatten(target)])
        flat = [] if sources is None else [differentiated(one, "source") for one in nest.flatten(sources)]
        owner = self._of_session()
        asked = [followed(one, owner) for one in targets], [followed(one, owner) for one in flat]
        return TapeGraph(owner.diagram(tape, *asked, nodes), owner.drawer(tape, *asked, nodes))

    def memory(self) -> TapeMemory:
        """The bytes that the tape keeps, and those that its end would free. Over HTTP a round trip.

        Raises:
            RuntimeError: The tape was never entered.
        """
        tape = self._looked_at("count")
        kept, freed = self._of_session().footprint(tape)
        return TapeMemory(tape.length, kept, freed)

    def check_gradients(
        self,
        target: Any,
        sources: Any,
        *,
        entries: int = ENTRIES,
        seed: int = 0,
        step: float | None = None,
        rtol: float | None = None,
        atol: float | None = None,
    ) -> Report:
        """Compares the tape's gradients with differences of what it recorded, run again.

        The tape has to be `replayable`; it stays as it is. `tf.debugging.check_gradients` checks a function.

        Args:
            target: A tensor, or a nested structure of them; each is weighted at random.
            sources: Tensors and variables that it was computed from.
            entries: Elements of each source that are compared, chosen at random from a larger one.
            seed: Of that choice, and of the weights.
            step: Of the differences; None: by the dtype.
            rtol: Relative tolerance; None: by the dtype.
            atol: Absolute tolerance; None: by the dtype.

        Raises:
            RuntimeError: The tape was never entered.
            ValueError: It is not replayable, or has answered already.
            teletape.errors.GradientMismatch: The derivatives differ; it has the `report`.
            teletape.errors.InvalidArgumentError: It recorded calls of your own functions with gradients of their own.
        """
        tape = self._looked_at("check")
        targets = parts([differentiated(one, "target") for one in nest.flatten(target)])
        flat = [differentiated(one, "source") for one in nest.flatten(sources)]
        settings = Settings(entries, seed, step, rtol, atol)
        settings.check()
        owner = self._of_session()
        asked = [followed(one, owner) for one in targets], [followed(one, owner) for one in flat]
        try:
            report = owner.check_tape(tape, *asked, settings)
        except TeletapeError as error:
            raise error.surfaced() from None
        if not report.agrees:
            raise GradientMismatch(report)
        return report

    def _looked_at(self, verb: str) -> Tape:
        tape = self._tape if self._tape is not None else self._past
        if tape is None:
            raise RuntimeError(f"this tape was never entered, so it has nothing to {verb}: use it with `with` first")
        return tape

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        if self._tape is None and self._past is None:
            return {"text/plain": repr(self)}
        try:
            return self.graph(nodes=_DISPLAYED)._repr_mimebundle_()
        except TeletapeError as error:  # a session that has ended
            return {"text/plain": f"{self!r}\n({error})"}
