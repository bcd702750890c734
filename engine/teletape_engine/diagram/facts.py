"""A tape as a diagram: what it watched, the calls it recorded, what each keeps; folded where they are too many to see.

Facts alone, JSON-able; `teletape_engine.diagram.dot` writes them as DOT.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from teletape_engine.catalogue.binding import Plan
from teletape_engine.diagram.folding import Segment, fold
from teletape_engine.explain.explanation import Explanation
from teletape_engine.explain.reasons import Reason
from teletape_engine.recording.custom import Custom, Output
from teletape_engine.recording.tape import Node, Tape
from teletape_engine.recording.values import Literal, Uid
from teletape_engine.spec import Spec

MOST: Final = 2000  #: Nodes of a diagram, unless another number is asked for.
_SHOWN: Final = 6  #: Kinds of ops that a group names.

#: From a kept value to the identity and the bytes of the buffer that it keeps alive.
Size = Callable[[Any], tuple[int, int]]


def _nowhere(where: Any) -> str | None:
    return None if where is None else str(where)


def _nameless(uid: Uid) -> str | None:
    return None


def diagram(
    tape: Tape,
    *,
    targets: Sequence[Any] = (),
    sources: Sequence[Any] = (),
    explanations: Mapping[Uid, Explanation] | None = None,
    size: Size | None = None,
    name: Callable[[Uid], str | None] = _nameless,
    format_where: Callable[[Any], str | None] = _nowhere,
    most: int = MOST,
) -> dict[str, Any]:
    """The tape as JSON-able facts.

    Args:
        tape: Which; of one that has answered the structure is still there, and nothing is kept.
        targets: Recorded values or variables: they, and the path of their gradient to the sources, are marked.
        sources: The same.
        explanations: Why the targets' gradient is what it is, by the uid of the source: what they blame is marked.
        size: Tells the buffers that kept values keep alive; without, bytes are unknown (null).
        name: What people call the value of that uid.
        format_where: Turns a node's call site into text.
        most: Nodes, at least 4; more are folded.

    Returns:
        ops: How many calls the tape has recorded.
        bytes: What they keep, each buffer once (null: not known here).
        consumed: Whether it has answered, and keeps nothing any more.
        folded: How calls were put together, in words; null if each has a node of its own.
        nodes: Each with `id`, `kind` (variable, tensor, op, read, group: calls drawn as one, watched: several sources
            drawn as one, outside: asked for and not on the tape, cut: blamed and not on the tape), `ops` (calls),
            `first` (number of the first of them on the tape), `label`, `name`, `dtype`, `shape`, `bytes` (of buffers
            that no call before it keeps), `keeps` (inputs by name, y: the result), `where`, `marks` (source, target,
            path, cut), `why` (of a cut).
        edges: Each with `from`, `to`, `uses` (how many inputs), `carries` (whether a gradient passes), `path`.
        explanations: Of each source, with `source` and `drawn`: its node, and that which is to blame (null: none is).
    """
    return _Drawing(tape, targets, sources, explanations or {}, size, name, format_where, max(most, 4)).facts()


class _Drawing:
    """One diagram in the making."""

    def __init__(
        self,
        tape: Tape,
        targets: Sequence[Any],
        sources: Sequence[Any],
        explanations: Mapping[Uid, Explanation],
        size: Size | None,
        name: Callable[[Uid], str | None],
        place: Callable[[Any], str | None],
        most: int,
    ) -> None:
        self.tape, self.size, self.name, self.place, self.most = tape, size, name, place, most
        self.nodes = tape.structure()
        self.explanations = {uid: one for uid, one in explanations.items() if one.code is not Reason.CONNECTED}
        self.cuts = {self.nodes[one.node][2]: one.message for one in self.explanations.values() if one.node is not None}
        self.specs: dict[Uid, Spec] = {one.uid: one.spec for one in (*targets, *sources, *tape.variables.values())}
        self.targets, self.sources = {one.uid for one in targets}, {one.uid for one in sources}
        self.made = {node[2]: at for at, node in enumerate(self.nodes)}
        self.on_path = _path(self.nodes, self.targets, self.sources)
        self.counted: set[int] = set()
        self.total = 0

    def facts(self) -> dict[str, Any]:
        ends = self._ends()
        segments = fold([_alike(node) for node in self.nodes], self.most - min(len(ends), self.most // 4))
        drawn, of = self._leaves(ends)
        ids: list[str] = []
        for segment in segments:
            one = self._call(self.nodes[segment.start], segment.start) if _single(segment) else self._group(segment)
            drawn.append(one)
            for node in self.nodes[segment.start : segment.stop]:
                of[node[2]] = one["id"]
                ids.append(one["id"])
        edges = self._edges(ids, of)
        text = self._told(segments, len(ends) - (len(drawn) - len(segments)))
        blamed = self._blamed(drawn, edges, of)
        return {
            "ops": len(self.nodes),
            "bytes": None if self.size is None else self.total,
            "consumed": self.tape.consumed,
            "folded": text,
            "nodes": drawn,
            "edges": edges,
            "explanations": blamed,
        }

    # ---------------------------------------------------------------------------------------------------------- nodes
    def _ends(self) -> dict[Uid, str]:
        """What the calls begin with, and what was asked for and is none of it, each with its kind."""
        tape = self.tape
        ends = dict.fromkeys(tape.variables, "variable")
        used: dict[Uid, None] = {}
        for plan, inputs, _, _, _ in self.nodes:
            for i, uid in enumerate(inputs):
                if uid in tape.leaves and uid not in self.made:
                    used[uid] = None
                    self.specs.setdefault(uid, plan.bound.specs[i])
        for uid in (*used, *sorted(tape.leaves - used.keys())):
            ends.setdefault(uid, "tensor")
        for uid in sorted(self.targets | self.sources):
            if uid not in self.made:
                ends.setdefault(uid, "outside")
        return ends

    def _leaves(self, ends: Mapping[Uid, str]) -> tuple[list[dict[str, Any]], dict[Uid | None, str]]:
        """A node for each end, asked ones first; those beyond a quarter of all nodes share one."""
        room = max(self.most // 4, 1)
        order = sorted(ends, key=lambda uid: uid not in self.targets | self.sources) if len(ends) > room else list(ends)
        alone, rest = (order, []) if len(order) <= room else (order[: room - 1], order[room - 1 :])
        drawn, of = [], dict[Uid | None, str]()
        for at, uid in enumerate(alone):
            spec = self.specs.get(uid)
            of[uid] = f"w{at}"
            label = "not on the tape" if ends[uid] == "outside" else ends[uid]
            facts = {"label": label, "name": self._name(uid), "marks": self._marks((uid,))}
            drawn.append(_node(of[uid], ends[uid], spec, **facts))
        if rest:
            of |= dict.fromkeys(rest, "w")
            label = f"{len(rest):,} more watched"
            drawn.append(_node("w", "watched", None, label=label, marks=self._marks(rest)))
        return drawn, of

    def _call(self, node: Node, at: int) -> dict[str, Any]:
        plan, inputs, output, kept, where = node
        bound = plan.bound
        read = isinstance(inputs[0] if inputs else None, int) and inputs[0] in self.tape.variables
        n = len(bound.specs)
        arrays = [i for i, value in zip(plan.picks, kept, strict=False) if not isinstance(value, Literal)]
        keeps = ["y" if i == n else bound.input_name(i) for i in arrays]
        label = getattr(bound, "label", None) or bound.name
        return _node(
            f"n{at}",
            "read" if read else "op",
            bound.spec,
            label="read" if read else label,
            ops=1,
            first=at,
            name=self._name(output),
            bytes=self._bytes((kept,)),
            keeps=keeps,
            where=self.place(where),
            marks=self._marks((output,)),
            why=self.cuts.get(output),
        )

    def _group(self, segment: Segment) -> dict[str, Any]:
        nodes = self.nodes[segment.start : segment.stop]
        names = Counter(node[0].bound.name for node in nodes)
        label = ", ".join(f"{count:,} {op}" for op, count in names.most_common(_SHOWN))
        if len(names) > _SHOWN:
            label += f" and {len(names) - _SHOWN} other kinds"
        if segment.trips > 1:
            label = f"{segment.trips:,} times the same {segment.period}: {label}"
        first, last = self.place(nodes[0][4]), self.place(nodes[-1][4])
        outputs = [node[2] for node in nodes]
        return _node(
            f"n{segment.start}",
            "group",
            None,
            label=label,
            ops=len(nodes),
            first=segment.start,
            bytes=self._bytes(node[3] for node in nodes),
            where=first if first == last or last is None else f"{first} to {last}",
            marks=self._marks(outputs),
            why=next((self.cuts[uid] for uid in outputs if uid in self.cuts), None),
        )

    def _name(self, uid: Uid) -> str | None:
        variable = self.tape.variables.get(uid)
        return self.name(uid) if variable is None else variable.name

    def _marks(self, uids: Collection[Uid]) -> list[str]:
        found = ("source", self.sources), ("target", self.targets), ("path", self.on_path), ("cut", self.cuts)
        return [mark for mark, marked in found if marked and any(uid in marked for uid in uids)]

    def _bytes(self, kept: Iterable[tuple[Any, ...]]) -> int | None:
        if self.size is None:
            return None
        found = 0
        for values in kept:
            for value in values:
                if not isinstance(value, Literal):
                    buffer, nbytes = self.size(value)
                    if buffer not in self.counted:
                        self.counted.add(buffer)
                        found += nbytes
        self.total += found
        return found

    def _told(self, segments: Sequence[Segment], hidden: int) -> str | None:
        """How calls, and watched values (`hidden`: how many have no node of their own), were put together."""
        told = []
        if len(segments) < len(self.nodes):
            repeated = any(segment.trips for segment in segments)
            how = (
                "calls that repeat, such as the trips of a loop, stand together"
                if repeated
                else "neighbours stand together"
            )
            told.append(f"{len(self.nodes):,} ops are drawn as {len(segments):,} nodes: {how}")
        if hidden:
            told.append(f"{hidden + 1:,} watched values share a node")
        return "; ".join(told) or None

    def _blamed(
        self, drawn: list[dict[str, Any]], edges: list[dict[str, Any]], of: Mapping[Uid | None, str]
    ) -> list[dict[str, Any]]:
        """The explanations. What they blame and no tape has recorded is added, between the source and the targets."""
        told: list[dict[str, Any]] = []
        for uid, one in self.explanations.items():
            placed = one.with_call_sites(self.place)
            node = None if one.node is None else of[self.nodes[one.node][2]]
            if node is None and one.op is not None:
                node = f"x{len(told)}"
                text = {"label": one.op, "where": placed.where, "why": one.message, "marks": ["cut"]}
                drawn.append(_node(node, "cut", None, **text))
                edges.append(_edge(of.get(one.cut_value, of[uid]), node))
                edges += [_edge(node, of[target]) for target in sorted(self.targets) if of[target] != of[uid]]
            told.append(placed.facts() | {"source": of[uid], "drawn": node})
        return told

    # ---------------------------------------------------------------------------------------------------------- edges
    def _edges(self, ids: Sequence[str], of: Mapping[Uid | None, str]) -> list[dict[str, Any]]:
        edges: dict[tuple[str, str], dict[str, Any]] = {}
        for to, (plan, inputs, output, _, _) in zip(ids, self.nodes, strict=True):
            carrying = carriers(plan)
            for i, uid in enumerate(inputs):
                begin = of.get(uid)
                if begin is None or begin == to:
                    continue
                edge = edges.get((begin, to))
                if edge is None:
                    edge = edges[begin, to] = _edge(begin, to, uses=0)
                edge["uses"] += 1
                edge["carries"] |= i in carrying
                edge["path"] |= uid in self.on_path and output in self.on_path and i in carrying
        return list(edges.values())


def carriers(plan: Plan) -> Collection[int]:
    """The inputs of a call to which a gradient passes through it."""
    if isinstance(plan.bound, Custom | Output):  # the caller's own function decides
        return range(len(plan.bound.specs))
    return [i for i, _ in plan.rules]


def _path(nodes: Sequence[Node], targets: Collection[Uid], sources: Collection[Uid]) -> set[Uid]:
    """The uids that a gradient of the targets passes on its way to the sources."""
    if not targets or not sources:
        return set()
    reached: set[Uid | None] = set(sources)
    for plan, inputs, output, _, _ in nodes:
        if any(inputs[i] in reached for i in carriers(plan)):
            reached.add(output)
    needed: set[Uid | None] = set(targets)
    for plan, inputs, output, _, _ in reversed(nodes):
        if output in needed:
            needed.update([inputs[i] for i in carriers(plan)])
    return {uid for uid in reached & needed if uid is not None}


def _single(segment: Segment) -> bool:
    return segment.stop - segment.start == 1


def _alike(node: Node) -> Any:
    """Equal for calls that are drawn alike, on both sides of a wire."""
    plan = node[0]
    return plan.bound.name, plan.bound.spec, plan.picks


def _edge(begin: str, end: str, *, uses: int = 1) -> dict[str, Any]:
    return {"from": begin, "to": end, "uses": uses, "carries": False, "path": False}


def _node(id: str, kind: str, spec: Spec | None, **facts: Any) -> dict[str, Any]:
    out: dict[str, Any] = {
        "id": id,
        "kind": kind,
        "ops": 0,
        "first": None,
        "label": kind,
        "name": None,
        "dtype": None if spec is None else spec.dtype.name,
        "shape": None if spec is None else list(spec.shape),
        "bytes": None,
        "keeps": [],
        "where": None,
        "marks": [],
        "why": None,
    }
    return out | facts
