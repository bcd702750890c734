"""A tape as a diagram: what it watched, the calls it recorded, what each keeps; folded if there are too many to show.

Facts alone, JSON-able; `teletape_engine.diagram.dot` writes them as DOT.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from teletape_engine.catalogue.binding import CallPlan, Select
from teletape_engine.diagram.folding import Segment, fold
from teletape_engine.explain.explanation import Explanation
from teletape_engine.explain.reasons import Reason
from teletape_engine.recording.custom import CustomTapeCall
from teletape_engine.recording.tape import NodeTuple, Tape
from teletape_engine.recording.values import Uid, Unrecorded
from teletape_engine.spec import Spec

MAX_NODES: Final = 2000  #: Nodes of a diagram, unless the caller gives another number.
_SHOWN_OPS: Final = 6  #: Kinds of ops that the label of a group names.

#: From a kept value to the identity and the bytes of the buffer that it keeps alive.
Size = Callable[[Any], tuple[int, int]]


def _where_text(where: Any) -> str | None:
    return None if where is None else str(where)


def _no_name(uid: Uid) -> str | None:
    return None


def diagram(
    tape: Tape,
    *,
    targets: Sequence[Any] = (),
    sources: Sequence[Any] = (),
    explanations: Sequence[Explanation] = (),
    size: Size | None = None,
    name: Callable[[Uid], str | None] = _no_name,
    format_where: Callable[[Any], str | None] = _where_text,
    max_nodes: int = MAX_NODES,
    part: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Returns a tape's diagram as JSON-able facts.

    Args:
        tape: The tape. One that has answered still has its structure, and keeps nothing.
        targets: Recorded values or variables. They, and the path of their gradient to the sources, are marked.
        sources: Recorded values or variables.
        explanations: Why the targets' gradient is what it is, one for each source; what they blame is marked. Empty if
            there are no targets.
        size: Gives the buffers that kept values keep alive. Without it, bytes are unknown (null).
        name: The name that people gave the value of a uid.
        format_where: Turns a node's call site into text.
        max_nodes: Nodes, at least 4; a longer tape is folded.
        part: Positions of the first call that is drawn, and after the last; None: all. A value from before the part is
            of the kind `outside`.

    Returns:
        ops: Number of calls that are drawn: all that the tape has recorded, or those of the part.
        bytes: Bytes that they keep, each buffer once (null: not known here).
        consumed: Whether the tape has answered, and keeps nothing any more.
        folded: How calls were put together, in words; null if each call has a node.
        nodes: Each with `id`, `kind` (variable, tensor, op, read, group: calls drawn as one, watched: several sources
            drawn as one, outside: a target or source that is not on the tape, or made before the part that is drawn,
            cut: blamed and not on the tape), `ops`
            (number of calls), `first` (position of the first of them on the tape), `label`, `name`, `dtype`, `shape`,
            `bytes` (of buffers that no earlier call keeps), `keeps` (inputs by name, y: the result), `where`, `marks`
            (source, target, path, cut), `why` (of a cut).
        edges: Each with `from`, `to`, `uses` (number of inputs), `carries` (whether a gradient passes), `path`.
        explanations: One for each source, with `source` and `drawn`: the ids of its node and of the blamed node (null:
            no node is to blame).
    """
    by_source = {source.uid: explanation for source, explanation in zip(sources, explanations, strict=False)}
    drawing = _Drawing(tape, targets, sources, by_source, size, name, format_where, max(max_nodes, 4), part)
    return drawing.facts()


class _Drawing:
    """One diagram in the making; the arguments are those of `diagram`."""

    def __init__(
        self,
        tape: Tape,
        targets: Sequence[Any],
        sources: Sequence[Any],
        explanations: Mapping[Uid, Explanation],
        size: Size | None,
        name: Callable[[Uid], str | None],
        format_where: Callable[[Any], str | None],
        max_nodes: int,
        part: tuple[int, int] | None,
    ) -> None:
        self.tape, self.size, self.name, self.format_where = tape, size, name, format_where
        self.max_nodes = max_nodes
        self.all_nodes = tape.structure()
        self.is_part = part is not None
        first, stop = part or (0, len(self.all_nodes))
        self.first = first  # position on the tape of the first call that is drawn
        self.nodes = self.all_nodes[first:stop]
        self.explanations = {
            uid: explanation for uid, explanation in explanations.items() if explanation.code is not Reason.CONNECTED
        }
        self.cuts = {
            self.all_nodes[explanation.node][2]: explanation.message
            for explanation in self.explanations.values()
            if explanation.node is not None
        }
        self.specs: dict[Uid, Spec] = {
            recorded.uid: recorded.spec for recorded in (*targets, *sources, *tape.variables.values())
        }
        self.targets, self.sources = {target.uid for target in targets}, {source.uid for source in sources}
        self.outputs = {node[2] for node in self.nodes}
        self.on_path = _path(self.all_nodes, self.targets, self.sources)
        self.labels: dict[Uid | None, str] = {}
        self.leaf_ids: dict[Uid, str] = {}
        self.counted_buffers: set[int] = set()
        self.total_bytes = 0

    def facts(self) -> dict[str, Any]:
        leaves = self._leaves()
        room = self.max_nodes - min(len(leaves), self.max_nodes // 4)
        segments = fold([_fold_key(node) for node in self.nodes], room)
        drawn, drawn_as = self._leaf_nodes(leaves)
        node_ids: list[str] = []  # of each call
        for segment in segments:
            single = segment.stop - segment.start == 1
            start = self.first + segment.start
            node = self._call(self.nodes[segment.start], start) if single else self._group(segment)
            drawn.append(node)
            for call in self.nodes[segment.start : segment.stop]:
                drawn_as[call[2]] = node["id"]
                node_ids.append(node["id"])
        hidden = len(leaves) - (len(drawn) - len(segments))
        edges = self._edges(node_ids, drawn_as)
        explanations = self._explanations(drawn, edges, drawn_as)
        return {
            "ops": len(self.nodes),
            "bytes": None if self.size is None else self.total_bytes,
            "consumed": self.tape.consumed,
            "folded": self._folded_text(segments, hidden),
            "nodes": drawn,
            "edges": edges,
            "explanations": explanations,
        }

    # ---------------------------------------------------------------------------------------------------------- nodes
    def _leaves(self) -> dict[Uid, str]:
        """The kinds of values that the drawn calls begin with, and of targets and sources that are not on the tape."""
        leaves, specs = leaves_of(self.tape)
        self.specs = specs | self.specs
        self.leaf_ids = {uid: f"w{position}" for position, uid in enumerate(leaves)}
        if self.is_part:
            before = self._made_before()
            uids = dict.fromkeys(uid for node in self.nodes for uid in node[1] if uid in before or uid in leaves)
            return {uid: leaves.get(uid, "outside") for uid in uids if uid is not None and uid not in self.outputs}
        for uid in sorted(self.targets | self.sources):
            if uid not in self.outputs:
                leaves.setdefault(uid, "outside")
                self.leaf_ids.setdefault(uid, f"w{len(self.leaf_ids)}")
        return leaves

    def _made_before(self) -> dict[Uid | None, str]:
        """The results that the part uses of calls before it: labels by uid."""
        used = {uid for node in self.nodes for uid in node[1]}
        labels: dict[Uid | None, str] = {}
        for position, (plan, _, output, _, _) in enumerate(self.all_nodes[: self.first]):
            if output in used:
                labels[output] = plan.bound.name
                self.specs.setdefault(output, plan.bound.spec)
                self.leaf_ids[output] = f"n{position}"
        self.labels = labels
        return labels

    def _leaf_nodes(self, leaves: Mapping[Uid, str]) -> tuple[list[dict[str, Any]], dict[Uid | None, str]]:
        """A node for each leaf, targets and sources first; beyond a quarter of all nodes the rest share one node."""
        room = max(self.max_nodes // 4, 1)
        order = list(leaves)
        rest: list[Uid] = []
        if len(order) > room:
            order.sort(key=lambda uid: uid not in self.targets | self.sources)
            order, rest = order[: room - 1], order[room - 1 :]
        drawn, drawn_as = [], dict[Uid | None, str]()
        for uid in order:
            drawn_as[uid] = self.leaf_ids[uid]
            label = self.labels.get(uid, "not on the tape") if leaves[uid] == "outside" else leaves[uid]
            facts = {"label": label, "name": self._name(uid), "marks": self._marks((uid,))}
            drawn.append(_node(drawn_as[uid], leaves[uid], self.specs.get(uid), **facts))
        if rest:
            drawn_as |= dict.fromkeys(rest, "w")
            label = f"{len(rest):,} more watched"
            drawn.append(_node("w", "watched", None, label=label, marks=self._marks(rest)))
        return drawn, drawn_as

    def _call(self, node: NodeTuple, position: int) -> dict[str, Any]:
        plan, inputs, output, residuals, where = node
        bound = plan.bound
        reads_variable = isinstance(inputs[0] if inputs else None, int) and inputs[0] in self.tape.variables
        picks = [pick for pick, value in zip(plan.picks, residuals, strict=False) if not isinstance(value, Unrecorded)]
        return _node(
            f"n{position}",
            "read" if reads_variable else "op",
            bound.spec,
            label="read" if reads_variable else getattr(bound, "label", None) or bound.name,
            ops=1,
            first=position,
            name=self._name(output),
            bytes=self._bytes((residuals,)),
            keeps=[bound.kept_name(pick) for pick in picks],
            where=self.format_where(where),
            marks=self._marks((output,)),
            why=self.cuts.get(output),
        )

    def _group(self, segment: Segment) -> dict[str, Any]:
        nodes = self.nodes[segment.start : segment.stop]
        counts = Counter(node[0].bound.name for node in nodes)
        label = ", ".join(f"{count:,} {op}" for op, count in counts.most_common(_SHOWN_OPS))
        if len(counts) > _SHOWN_OPS:
            label += f" and {len(counts) - _SHOWN_OPS} other kinds"
        if segment.iterations > 1:
            label = f"{segment.iterations:,} times the same {segment.period}: {label}"
        first, last = self.format_where(nodes[0][4]), self.format_where(nodes[-1][4])
        outputs = [node[2] for node in nodes]
        return _node(
            f"n{self.first + segment.start}",
            "group",
            None,
            label=label,
            ops=len(nodes),
            first=self.first + segment.start,
            bytes=self._bytes(node[3] for node in nodes),
            where=first if first == last or last is None else f"{first} to {last}",
            marks=self._marks(outputs),
            why=next((self.cuts[uid] for uid in outputs if uid in self.cuts), None),
        )

    def _name(self, uid: Uid) -> str | None:
        variable = self.tape.variables.get(uid)
        return self.name(uid) if variable is None else variable.name

    def _marks(self, uids: Collection[Uid]) -> list[str]:
        marked: tuple[tuple[str, Collection[Uid]], ...] = (
            ("source", self.sources),
            ("target", self.targets),
            ("path", self.on_path),
            ("cut", self.cuts),
        )
        return [mark for mark, marked_uids in marked if marked_uids and any(uid in marked_uids for uid in uids)]

    def _bytes(self, residuals: Iterable[tuple[Any, ...]]) -> int | None:
        """Bytes of the buffers that these residuals keep alive, and no earlier node does."""
        if self.size is None:
            return None
        added = 0
        for values in residuals:
            for value in values:
                if not isinstance(value, Unrecorded):
                    buffer, nbytes = self.size(value)
                    if buffer not in self.counted_buffers:
                        self.counted_buffers.add(buffer)
                        added += nbytes
        self.total_bytes += added
        return added

    def _folded_text(self, segments: Sequence[Segment], hidden: int) -> str | None:
        """How calls, and the `hidden` watched values that have no node of their own, were put together."""
        texts = []
        if len(segments) < len(self.nodes):
            repeated = any(segment.iterations for segment in segments)
            how = (
                "calls that repeat, such as the iterations of a loop, are one node"
                if repeated
                else "neighbours are one node"
            )
            texts.append(f"{len(self.nodes):,} ops are drawn as {len(segments):,} nodes: {how}")
        if hidden:
            texts.append(f"{hidden + 1:,} watched values share a node")
        return "; ".join(texts) or None

    def _explanations(
        self, drawn: list[dict[str, Any]], edges: list[dict[str, Any]], drawn_as: Mapping[Uid | None, str]
    ) -> list[dict[str, Any]]:
        """The explanations. What they blame outside the tape is drawn between the source and the targets."""
        described: list[dict[str, Any]] = []
        for uid, explanation in self.explanations.items():
            as_text = explanation.with_call_sites(self.format_where)
            node = None if explanation.node is None else drawn_as[self.all_nodes[explanation.node][2]]
            if node is None and explanation.op is not None:
                node = f"x{len(described)}"
                facts = {"label": explanation.op, "where": as_text.where, "why": explanation.message, "marks": ["cut"]}
                drawn.append(_node(node, "cut", None, **facts))
                edges.append(_edge(drawn_as.get(explanation.cut_value, drawn_as[uid]), node))
                ends = [drawn_as[target] for target in sorted(self.targets)]
                edges += [_edge(node, end) for end in ends if end != drawn_as[uid]]
            described.append(as_text.facts() | {"source": drawn_as[uid], "drawn": node})
        return described

    # ---------------------------------------------------------------------------------------------------------- edges
    def _edges(self, node_ids: Sequence[str], drawn_as: Mapping[Uid | None, str]) -> list[dict[str, Any]]:
        edges: dict[tuple[str, str], dict[str, Any]] = {}
        for end, (plan, inputs, output, _, _) in zip(node_ids, self.nodes, strict=True):
            passing = passing_inputs(plan)
            for index, uid in enumerate(inputs):
                begin = drawn_as.get(uid)
                if begin is None or begin == end:
                    continue
                edge = edges.get((begin, end))
                if edge is None:
                    edge = edges[begin, end] = _edge(begin, end, uses=0)
                edge["uses"] += 1
                edge["carries"] |= index in passing
                edge["path"] |= uid in self.on_path and output in self.on_path and index in passing
        return list(edges.values())


def leaves_of(tape: Tape) -> tuple[dict[Uid, str], dict[Uid, Spec]]:
    """Returns what a tape watches, in the order of the node ids `w0`, `w1`, …: kinds and specs by uid."""
    leaves = dict.fromkeys(tape.variables, "variable")
    specs: dict[Uid, Spec] = {variable.uid: variable.spec for variable in tape.variables.values()}
    nodes = tape.structure()
    outputs = {node[2]: node[0].bound.spec for node in nodes}
    used: dict[Uid, None] = {}
    for plan, inputs, _, _, _ in nodes:
        for index, uid in enumerate(inputs):
            if uid in tape.leaves and uid not in outputs:
                used[uid] = None
                specs.setdefault(uid, plan.bound.specs[index])
    for uid in (*used, *sorted(tape.leaves - used.keys())):
        leaves.setdefault(uid, "tensor")
        if uid in outputs:
            specs.setdefault(uid, outputs[uid])
    return leaves, specs


def passing_inputs(plan: CallPlan) -> Collection[int]:
    """Numbers of the inputs that a gradient passes to; all of a custom call's, whose function decides."""
    if isinstance(plan.bound, CustomTapeCall | Select):
        return range(len(plan.bound.specs))
    return [index for index, _ in plan.rules]


def _path(nodes: Sequence[NodeTuple], targets: Collection[Uid], sources: Collection[Uid]) -> set[Uid]:
    """The uids that a gradient of the targets passes before it comes to the sources."""
    if not targets or not sources:
        return set()
    made_of_sources: set[Uid | None] = set(sources)
    for plan, inputs, output, _, _ in nodes:
        if any(inputs[index] in made_of_sources for index in passing_inputs(plan)):
            made_of_sources.add(output)
    reached: set[Uid | None] = set(targets)
    for plan, inputs, output, _, _ in reversed(nodes):
        if output in reached:
            reached.update([inputs[index] for index in passing_inputs(plan)])
    return {uid for uid in made_of_sources & reached if uid is not None}


def _fold_key(node: NodeTuple) -> Any:
    """Equal for calls that are drawn alike, in the engine and in an SDK."""
    plan = node[0]
    return plan.bound.name, plan.bound.spec, plan.picks


def _edge(begin: str, end: str, *, uses: int = 1) -> dict[str, Any]:
    return {"from": begin, "to": end, "uses": uses, "carries": False, "path": False}


def _node(node_id: str, kind: str, spec: Spec | None, **facts: Any) -> dict[str, Any]:
    node: dict[str, Any] = {
        "id": node_id,
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
    return node | facts
