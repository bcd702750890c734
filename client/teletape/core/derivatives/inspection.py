"""Inspecting a tape: its graph as a picture, the bytes that it keeps, and a numeric check of its gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from teletape.core.derivatives.arguments import recorded_values, sources_of, targets_of
from teletape.core.errors import GradientMismatch
from teletape.core.program.tracebacks import reports
from teletape.core.sessions.session import Session
from teletape_engine.derivatives.finite_differences import ENTRIES, Settings
from teletape_engine.derivatives.reports.check_report import Report
from teletape_engine.diagram import dot, graphviz
from teletape_engine.diagram.facts import MAX_NODES
from teletape_engine.errors import TeletapeError
from teletape_engine.recording.tape import Tape

_DISPLAYED = 300  #: Nodes of the picture that a notebook displays by itself.


class TapeMemory(NamedTuple):
    """The bytes that a tape keeps, each buffer once.

    Attributes:
        ops: Number of recorded calls.
        bytes: Bytes of the arrays that it keeps for its gradients.
        frees: Bytes that ending the tape would free: of those arrays, and of variables that only the tape keeps alive.
    """

    ops: int
    bytes: int
    frees: int

    def __str__(self) -> str:
        return f"{self.ops:,} ops keep {dot.bytes_text(self.bytes)}; ending the tape frees {dot.bytes_text(self.frees)}"


class TapeGraph:
    """The graph of a tape as a picture, which a notebook displays.

    Attributes:
        json: Nodes, edges and explanations (docs/graph.md).
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
        summary = self.json["folded"] or f"{self.json['ops']:,} ops"
        size = "" if self.json["bytes"] is None else f", {dot.bytes_text(self.json['bytes'])} kept"
        cuts = [
            f"\n  {explanation['message']}"
            for explanation in self.json["explanations"]
            if explanation["drawn"] is not None
        ]
        return f"<TapeGraph: {summary}{size}>" + "".join(cuts)


class TapeInspection:
    """The methods of `GradientTape` that inspect it."""

    _tape: Tape | None
    _past: Tape | None

    def _of_session(self) -> Session:
        """Returns the tape's session; see `GradientTape`."""
        raise NotImplementedError  # pragma: no cover - abstract

    @reports
    def graph(self, target: Any = None, sources: Any = None, *, nodes: int = MAX_NODES) -> TapeGraph:
        """Returns the tape's graph as a picture: what it watched, the calls it recorded, and what each keeps.

        It can be drawn while the tape records, and after it has computed gradients.

        Args:
            target: With `sources`: the path of the gradient is marked, and if there is none, what cuts it. A tensor or
                variable, or a nested structure of them.
            sources: Tensors or variables, likewise.
            nodes: The largest number of nodes. In a longer tape repeated parts are drawn once, then neighbours are
                joined.

        Raises:
            RuntimeError: The tape was never entered.
            TypeError: A target or source that is no tensor; only one of `target` and `sources`.
        """
        tape = self._entered_tape("draw")
        if (target is None) is not (sources is None):
            raise TypeError("graph: a target and sources belong together: give both, or neither")
        owner = self._of_session()
        path = ([], []) if target is None else _recorded(targets_of(target), sources_of(sources), owner)
        return TapeGraph(owner.diagram(tape, *path, nodes), owner.drawer(tape, *path, nodes))

    @reports
    def memory(self) -> TapeMemory:
        """Returns the bytes that the tape keeps, and those that its end would free. Over HTTP this is a round trip.

        Raises:
            RuntimeError: The tape was never entered.
        """
        tape = self._entered_tape("count")
        return TapeMemory(tape.length, *self._of_session().footprint(tape))

    @reports
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
        """Compares the tape's gradients with finite differences: the recorded ops run again at moved points.

        The tape has to be `replayable`; it stays as it is. `tf.debugging.check_gradients` checks a function.

        Args:
            target: A tensor, or a nested structure of them; each is weighted at random.
            sources: Tensors and variables that it was computed from.
            entries: Elements of each source that are compared, chosen at random from a larger one.
            seed: Seed of that choice, and of the weights.
            step: Step of the differences; None: by the dtype.
            rtol: Relative tolerance; None: by the dtype.
            atol: Absolute tolerance; None: by the dtype.

        Raises:
            RuntimeError: The tape was never entered.
            ValueError: The tape is not replayable, or is used up.
            teletape.errors.GradientMismatch: The derivatives differ; the error has the `report`.
            teletape.errors.InvalidArgumentError: The tape recorded a call with a custom gradient.
        """
        tape = self._entered_tape("check")
        targets, flat = targets_of(target), sources_of(sources)
        settings = Settings(entries, seed, step, rtol, atol)
        settings.check()
        owner = self._of_session()
        try:
            report = owner.check_tape(tape, *_recorded(targets, flat, owner), settings)
        except TeletapeError as error:
            raise error.surfaced() from None
        if not report.agrees:
            raise GradientMismatch(report)
        return report

    def _entered_tape(self, verb: str) -> Tape:
        """Returns the tape, also if it is used up."""
        tape = self._tape if self._tape is not None else self._past
        if tape is None:
            raise RuntimeError(f"this tape was never entered, so it has nothing to {verb}: use it with `with` first")
        return tape

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        if self._tape is None and self._past is None:
            return {"text/plain": repr(self)}
        try:
            bundle = self.graph(nodes=_DISPLAYED)._repr_mimebundle_()
            return bundle | {"text/plain": f"{self!r}\n{bundle['text/plain']}"}
        except TeletapeError as error:  # a session that has ended
            return {"text/plain": f"{self!r}\n({error})"}


def _recorded(targets: Sequence[Any], sources: Sequence[Any], owner: Session) -> tuple[list[Any], list[Any]]:
    return recorded_values(targets, owner), recorded_values(sources, owner)
