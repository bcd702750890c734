// Draws a graph of nodes and edges: layout, zoom and pan, selection by click and keyboard. Any page can use it.

import { select, zoom, zoomIdentity } from "../vendor/d3/d3.js";
import { Graph, layout } from "../vendor/dagre/dagre.js";

const SVG = "http://www.w3.org/2000/svg";
const TITLE_WIDTH = 7.6; // pixels of a character
const LINE_WIDTH = 6.7;
const LINE_HEIGHT = 16;
const WIDTH_STEP = 24; // widths are rounded up, so that a longer number seldom moves the graph
const STEP = 1.3; // of a zoom by button or key
const MOST_SCALE = 1.15; // of a graph that has room
const READABLE = 0.2; // the scale below which a graph is shown from its beginning, and not all of it

function element(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined && value !== null) node.setAttribute(key, value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const rounded = (width) => Math.ceil(width / WIDTH_STEP) * WIDTH_STEP;

function widthOf(title, lines) {
  return Math.max((title ?? "").length * TITLE_WIDTH, ...lines.map((line) => line.text.length * LINE_WIDTH));
}

/** Places nodes and edges with dagre; returns {nodes: id → box, edges: [points, label box], width, height}. */
export function placed(nodes, edges, direction = "TB") {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: direction, nodesep: 28, ranksep: 30, edgesep: 14, marginx: 16, marginy: 16 });
  for (const node of nodes) {
    const lines = node.lines ?? [];
    graph.setNode(node.id, {
      width: Math.max(rounded(widthOf(node.title, lines) + 28), 48),
      height: (node.title ? 18 : 0) + lines.length * LINE_HEIGHT + 14,
    });
  }
  edges.forEach((edge, index) => {
    const lines = edge.lines ?? [];
    const label = lines.length
      ? { width: rounded(widthOf("", lines) + 12), height: lines.length * LINE_HEIGHT + 6, labelpos: "c" }
      : { width: 0, height: 0 };
    graph.setEdge(edge.from, edge.to, label, String(index));
  });
  layout(graph);
  const { width, height } = graph.graph();
  return {
    nodes: new Map(nodes.map((node) => [node.id, graph.node(node.id)])),
    edges: edges.map((edge, index) => graph.edge(edge.from, edge.to, String(index))),
    width: Math.max(width, 40),
    height: Math.max(height, 40),
  };
}

/** The path through an edge's points, with rounded bends. */
function curve(points) {
  const [first, ...rest] = points;
  if (rest.length === 1) return `M${first.x},${first.y}L${rest[0].x},${rest[0].y}`;
  let path = `M${first.x},${first.y}`;
  for (let i = 0; i < rest.length - 1; i += 1) {
    const [bend, next] = [rest[i], rest[i + 1]];
    const end = i === rest.length - 2 ? next : { x: (bend.x + next.x) / 2, y: (bend.y + next.y) / 2 };
    path += `Q${bend.x},${bend.y} ${end.x},${end.y}`;
  }
  return path;
}

/**
 * A drawn graph.
 *
 * A node is {id, title, lines: [{text, tone}], kind, marks: [name], label, folded}: `kind` and `marks` become classes
 * (graph.css has input, constant, op, group; source, target, cut, selected), `label` is read to those who cannot see,
 * `folded` is the number of ops that it stands for. An edge is {from, to, lines, kind}: graph.css has the kinds
 * gradient, zero, none and plain. Tones are value, gradient, bad, soft.
 */
export class GraphView {
  /**
   * @param {HTMLElement} parent - is filled; its class becomes "graph".
   * @param {{label: string, direction?: "TB"|"LR"|"auto", onSelect?: (id: string|null) => void}} options - auto: the
   *   direction in which more of the graph fits.
   */
  constructor(parent, { label, direction = "auto", onSelect = () => {} }) {
    this.direction = direction;
    this.onSelect = onSelect;
    this.selected = null;
    this.boxes = new Map();
    this.structure = "";
    this.touched = false; // whether the reader has moved the picture
    const title = `${label}. Arrow keys go from node to node, Enter selects, plus, minus and 0 zoom.`;
    this.layer = element("g");
    this.svg = element("svg", { role: "group", "aria-label": title }, this._arrows(), this.layer);
    parent.classList.add("graph");
    parent.replaceChildren(this.svg, this._buttons());
    this.zoom = zoom()
      .scaleExtent([0.05, 3])
      .filter((event) =>
        event.type === "wheel" ? event.ctrlKey || event.metaKey : event.touches ? event.touches.length > 1 : !event.button,
      )
      .on("zoom", (event) => {
        this.layer.setAttribute("transform", event.transform.toString());
        if (event.sourceEvent) this.touched = true;
      });
    select(this.svg).call(this.zoom).on("dblclick.zoom", null);
    this.svg.addEventListener("keydown", (event) => this._key(event));
    this.svg.addEventListener("click", (event) => {
      if (!event.target.closest("[data-node]")) this.select(null);
    });
    new ResizeObserver(() => {
      if (!this.touched) this.fit(READABLE);
    }).observe(parent);
  }

  _arrows() {
    const heads = ["plain", "gradient", "none", "zero"].map((kind) =>
      element(
        "marker",
        { id: `arrow-${kind}`, class: `arrow ${kind}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
        element("path", { d: "M0,0.5L8,4L0,7.5z" }),
      ),
    );
    return element("defs", {}, ...heads);
  }

  _buttons() {
    const buttons = document.createElement("div");
    buttons.className = "graph-buttons";
    for (const [text, label, action] of [
      ["+", "Zoom in", () => this._by(STEP)],
      ["−", "Zoom out", () => this._by(1 / STEP)],
      ["⤢", "Show all", () => this.fit()],
    ]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.title = label;
      button.setAttribute("aria-label", label);
      button.addEventListener("click", action);
      buttons.append(button);
    }
    return buttons;
  }

  /** Draws nodes and edges. The picture moves only if the structure is another one. */
  set({ nodes, edges }) {
    this.nodes = nodes;
    this.edges = edges;
    const structure = JSON.stringify([nodes.map((node) => node.id), edges.map((edge) => [edge.from, edge.to])]);
    const places = this._placed(nodes, edges, structure);
    this.size = places;
    this.boxes = places.nodes;
    const focused = document.activeElement?.closest?.("[data-node]")?.dataset.node;
    const drawnEdges = edges.map((edge, index) => this._edge(edge, places.edges[index]));
    this.layer.replaceChildren(
      element("g", { class: "edges", "aria-hidden": "true" }, ...drawnEdges.map(([path]) => path)),
      element("g", { class: "nodes" }, ...nodes.map((node) => this._node(node))),
      element("g", { class: "labels", "aria-hidden": "true" }, ...drawnEdges.map(([, label]) => label)),
    );
    if (this.selected !== null && !this.boxes.has(this.selected)) this.select(null);
    this._mark();
    if (structure !== this.structure) {
      this.structure = structure;
      this.touched = false;
    }
    if (!this.touched) this.fit(READABLE);
    if (focused !== undefined) this._drawn(focused)?.focus();
  }

  /** The layout; in direction "auto" that one of both that is drawn larger, and the same as long as the structure is. */
  _placed(nodes, edges, structure) {
    if (this.direction !== "auto") return placed(nodes, edges, this.direction);
    if (structure === this.structure && this.chosen) return placed(nodes, edges, this.chosen);
    const both = ["TB", "LR"].map((direction) => [direction, placed(nodes, edges, direction)]);
    const [[down, vertical], [, horizontal]] = both;
    const isBetter = this._scale(horizontal) > this._scale(vertical) * 1.1 && this._scale(vertical) < 1;
    const [direction, places] = isBetter ? both[1] : [down, vertical];
    this.chosen = direction;
    return places;
  }

  /** The scale at which a layout fits into the picture, at most a little more than natural. */
  _scale(size) {
    const { clientWidth: width, clientHeight: height } = this.svg;
    return Math.min((width || 600) / size.width, (height || 400) / size.height, MOST_SCALE);
  }

  _node(node) {
    const box = this.boxes.get(node.id);
    const [left, top] = [-box.width / 2, -box.height / 2];
    const shape = { x: left, y: top, width: box.width, height: box.height, rx: node.kind === "input" ? box.height / 2 : 8 };
    const folded = node.folded ? [8, 4].map((by) => element("rect", { ...shape, x: left + by, y: top + by })) : [];
    const lines = [...(node.title ? [{ text: node.title, tone: "title" }] : []), ...(node.lines ?? [])];
    let y = top + 7;
    const texts = lines.map((line) => {
      y += line.tone === "title" ? 18 : LINE_HEIGHT;
      return element("text", { class: `tone-${line.tone ?? "soft"}`, y: y - 5, "text-anchor": "middle" }, line.text);
    });
    const drawn = element(
      "g",
      {
        class: ["node", node.kind, ...(node.marks ?? [])].join(" "),
        transform: `translate(${box.x},${box.y})`,
        "data-node": node.id,
        role: "button",
        "aria-label": node.label ?? lines.map((line) => line.text).join(", "),
        tabindex: -1,
      },
      ...folded,
      element("rect", shape),
      ...texts,
    );
    drawn.addEventListener("click", () => this.select(node.id));
    return drawn;
  }

  _edge(edge, place) {
    const kind = edge.kind ?? "plain";
    const path = element("path", { class: `edge ${kind}`, d: curve(place.points), "marker-end": `url(#arrow-${kind})` });
    const lines = edge.lines ?? [];
    if (!lines.length) return [path, null];
    const [left, top] = [place.x - place.width / 2, place.y - place.height / 2];
    const texts = lines.map((line, index) =>
      element("text", { class: `tone-${line.tone ?? "soft"}`, x: place.x, y: top + index * LINE_HEIGHT + 14, "text-anchor": "middle" }, line.text),
    );
    const back = element("rect", { x: left, y: top, width: place.width, height: place.height, rx: 5 });
    return [path, element("g", { class: "edge-label" }, back, ...texts)];
  }

  /** Selects a node; null: none. */
  select(id) {
    if (id === this.selected) return;
    this.selected = id;
    this._mark();
    this.onSelect(id);
  }

  _mark() {
    const drawn = [...this.layer.querySelectorAll("[data-node]")];
    const entry = this.selected ?? drawn[0]?.dataset.node;
    for (const node of drawn) {
      const isSelected = node.dataset.node === this.selected;
      node.classList.toggle("selected", isSelected);
      node.setAttribute("aria-pressed", String(isSelected));
      node.setAttribute("tabindex", node.dataset.node === entry ? 0 : -1);
    }
  }

  _drawn(id) {
    return this.layer.querySelector(`[data-node="${CSS.escape(id)}"]`);
  }

  /** Shows the graph: all of it, or if it is long and `least` says so its beginning, in letters that can be read. */
  fit(least = 0) {
    const { clientWidth: width, clientHeight: height } = this.svg;
    if (!this.size || !width || !height) return;
    const scale = Math.max(this._scale(this.size), least);
    const place = (room, size) => (size * scale <= room ? (room - size * scale) / 2 : this.chosen === "LR" || room === height ? 0 : (room - size * scale) / 2);
    const [x, y] = [place(width, this.size.width), place(height, this.size.height)];
    select(this.svg).call(this.zoom.transform, zoomIdentity.translate(x, y).scale(scale));
    this.touched = false;
  }

  _by(factor) {
    select(this.svg).call(this.zoom.scaleBy, factor);
    this.touched = true;
  }

  _key(event) {
    const focused = event.target.closest("[data-node]");
    const directions = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const zooms = { "+": () => this._by(STEP), "=": () => this._by(STEP), "-": () => this._by(1 / STEP), 0: () => this.fit() };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in zooms) zooms[event.key]();
    else if (event.key === "Escape") this.select(null);
    else if (focused && (event.key === "Enter" || event.key === " ")) this.select(focused.dataset.node);
    else if (focused && event.key in directions) this._go(focused.dataset.node, directions[event.key]);
    else return;
    event.preventDefault();
  }

  /** Moves the focus to the nearest node in a direction. */
  _go(id, [dx, dy]) {
    const from = this.boxes.get(id);
    let [nearest, least] = [null, Infinity];
    for (const [other, box] of this.boxes) {
      const along = (box.x - from.x) * dx + (box.y - from.y) * dy;
      const across = Math.abs((box.x - from.x) * dy) + Math.abs((box.y - from.y) * dx);
      if (other !== id && along > 1 && along + 2 * across < least) [nearest, least] = [other, along + 2 * across];
    }
    if (nearest === null) return;
    const node = this._drawn(nearest);
    for (const drawn of this.layer.querySelectorAll("[data-node]")) drawn.setAttribute("tabindex", drawn === node ? 0 : -1);
    node.focus();
  }
}
