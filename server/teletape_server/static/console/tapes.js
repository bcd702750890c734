// The tapes of one session: which there are, and one of them drawn, folded if it is long.

import { GraphView } from "../shared/graph.js";
import { select as d3select, zoomIdentity } from "../vendor/d3/d3.js";
import { bytes, count, make, spec } from "./elements.js";
import { problem, showNode } from "./node.js";
import { read } from "./reads.js";

const NODES = 60; // of one picture: more is slow to read; groups open by a click
const READABLE = 0.55; // a picture that would be drawn smaller is shown from its top
const TEXT = 34; // characters of a line

const cut = (text) => (text.length > TEXT ? `${text.slice(0, TEXT - 1)}…` : text);

/** A node of the server's graph as graph.js draws it. */
function drawn(node) {
  const isGroup = node.kind === "group" || node.kind === "watched";
  const lines = [];
  if (isGroup && node.ops) lines.push(...node.label.split(": ").slice(-1)[0].split(", ").slice(0, 4).map((text) => ({ text: cut(text), tone: "soft" })));
  if (node.name && node.kind === "op") lines.push({ text: cut(`→ ${node.name}`), tone: "soft" });
  if (node.dtype) lines.push({ text: cut(spec(node.dtype, node.shape)), tone: "value" });
  if (node.bytes) lines.push({ text: `keeps ${bytes(node.bytes)}`, tone: "soft" });
  const title = isGroup && node.ops ? `${count(node.ops)} ops` : cut(node.kind === "op" || node.kind === "outside" ? node.label : node.name ?? node.label);
  return {
    id: node.id,
    title,
    lines,
    kind: isGroup ? "group" : ["variable", "tensor"].includes(node.kind) ? "input" : "op",
    marks: node.marks,
    folded: isGroup ? Math.max(node.ops, 2) : 0,
    label: [isGroup ? `group of ${node.ops} ops, opens` : node.label, node.name, spec(node.dtype, node.shape ?? [])].filter(Boolean).join(", "),
  };
}

/** The tapes of a session, as a part of the page. */
export class Tapes {
  /**
   * @param {string} path - of the session.
   * @param {() => void} onRefresh - reads what else the page shows of the session.
   */
  constructor(path, onRefresh) {
    this.path = path;
    this.aborted = new AbortController();
    this.parts = []; // of the tape, from the whole to what is shown
    this.choice = make("select", { "aria-label": "Tape", change: () => this.open(this.choice.value) });
    this.facts = make("span", { class: "soft", role: "status" });
    this.trail = make("nav", { class: "trail", "aria-label": "Part of the tape" });
    this.picture = make("div", { class: "picture" });
    this.panel = make("aside", { class: "node-panel", "aria-label": "Node" });
    this.hint();
    this.body = make("div", { class: "drawing" }, this.picture, this.panel);
    this.refresh = make("button", { type: "button", click: () => (onRefresh(), this.load()) }, "Refresh");
    this.element = make(
      "section",
      { class: "tapes", "aria-label": "Tapes" },
      make("div", { class: "bar" }, make("h3", {}, "Tapes"), make("div", { class: "row" }, this.choice, this.facts, this.refresh)),
      this.trail,
      this.body,
    );
    this.choice.classList.add("hidden");
  }

  hint() {
    this.panel.replaceChildren(make("p", { class: "soft" }, "Click a node, or go to one by Tab, the arrow keys and Enter."));
  }

  say(...parts) {
    this.view = null;
    this.body.classList.add("bare");
    this.picture.classList.remove("graph");
    this.picture.replaceChildren(make("div", { class: "message" }, ...parts));
  }

  /** Says that the session computes: its tapes are read when it has finished. */
  wait() {
    this.abort();
    this.refresh.disabled = true;
    const text = "The session computes. Its tapes are drawn when it has finished, or when you cancel.";
    if (this.view) this.trail.replaceChildren(make("span", { class: "soft" }, `${text} This picture is from before.`));
    else this.say(make("p", { class: "soft" }, text));
    this.element.dataset.state = "waiting";
  }

  abort() {
    this.aborted.abort();
    this.aborted = new AbortController();
  }

  /** Reads the list of tapes, and draws the one that was chosen, or the last. */
  async load() {
    this.abort();
    this.refresh.disabled = true;
    this.element.dataset.state = "loading";
    const { signal } = this.aborted;
    try {
      this.tapes = (await read(`${this.path}/tapes`, signal)).tapes;
      const chosen = this.tapes.some((tape) => String(tape.id) === this.tape) ? this.tape : undefined;
      this.choice.replaceChildren(...this.tapes.map((tape) => make("option", { value: tape.id }, `${tape.id} · ${count(tape.ops)} ops`)));
      this.choice.classList.toggle("hidden", !this.tapes.length);
      if (!this.tapes.length) {
        this.facts.textContent = "";
        this.say(make("p", { class: "soft" }, "No tapes. A tape appears here when the session makes one."));
        this.element.dataset.state = "ready";
      } else {
        await this.open(chosen ?? String(this.tapes.at(-1).id), chosen === undefined ? [] : this.parts);
      }
    } catch (error) {
      this.fail(error, signal);
    } finally {
      if (!signal.aborted) this.refresh.disabled = false;
    }
  }

  fail(error, signal) {
    if (signal.aborted || error.name === "AbortError") return;
    this.say(problem(error));
    this.element.dataset.state = "failed";
  }

  /** Draws a tape; `parts` are the groups that were opened. */
  async open(id, parts = []) {
    this.tape = id;
    this.parts = parts;
    this.choice.value = id;
    const facts = this.tapes.find((tape) => String(tape.id) === id);
    const states = [facts.consumed ? "consumed" : null, facts.recording ? "recording" : null, facts.persistent ? "persistent" : null];
    this.facts.textContent = [`keeps ${bytes(facts.bytes)}`, ...states.filter(Boolean)].join(" · ");
    const { signal } = this.aborted;
    const part = parts.at(-1);
    const query = part ? `&first=${part.first}&ops=${part.ops}` : "";
    try {
      const graph = await read(`${this.path}/tapes/${encodeURIComponent(id)}/graph?nodes=${NODES}${query}`, signal);
      if (signal.aborted) return;
      this.draw(graph);
      this.element.dataset.state = "ready";
    } catch (error) {
      this.fail(error, signal);
    }
  }

  draw(graph) {
    this.nodes = new Map(graph.nodes.map((node) => [node.id, node]));
    const crumbs = [{ text: "whole tape", parts: [] }];
    this.parts.forEach((part, index) => crumbs.push({ text: `ops ${count(part.first)}–${count(part.first + part.ops - 1)}`, parts: this.parts.slice(0, index + 1) }));
    const links = crumbs.map((crumb, index) =>
      index === crumbs.length - 1
        ? make("span", { "aria-current": "true" }, crumb.text)
        : make("button", { type: "button", class: "link", click: () => this.open(this.tape, crumb.parts) }, crumb.text),
    );
    this.trail.replaceChildren(...links, graph.folded ? make("span", { class: "soft" }, `${graph.folded}. Click a group to open it.`) : "");
    if (!graph.nodes.length) {
      this.say(make("p", { class: "soft" }, "The tape has recorded nothing yet."));
      return;
    }
    this.body.classList.remove("bare");
    if (!this.view) this.view = new GraphView(this.picture, { label: `Tape ${this.tape}`, onSelect: (id) => this.choose(id) });
    this.view.set({
      nodes: graph.nodes.map(drawn),
      edges: graph.edges.map((edge) => ({ from: edge.from, to: edge.to, kind: edge.carries ? "plain" : "none", lines: edge.uses > 1 ? [{ text: `×${count(edge.uses)}` }] : [] })),
    });
    this.readable();
  }

  /** Shows the beginning of a picture that is too large to read as a whole. */
  readable() {
    const { clientWidth: width, clientHeight: height } = this.view.svg;
    const { width: wide, height: tall } = this.view.size;
    if (!width || Math.min(width / wide, height / tall) >= READABLE) return;
    const scale = Math.max(Math.min(width / wide, 0.9), READABLE);
    d3select(this.view.svg).call(this.view.zoom.transform, zoomIdentity.translate((width - wide * scale) / 2, 8).scale(scale));
    this.view.touched = true;
  }

  async choose(id) {
    this.nodeAborted?.abort();
    if (id === null) {
      this.hint();
      return;
    }
    const node = this.nodes.get(id);
    if (node?.kind === "group") {
      this.hint();
      this.view.selected = null; // a node of what opens now may have the same id
      await this.open(this.tape, [...this.parts, { first: node.first, ops: node.ops }]);
      return;
    }
    if (id === "w" || id.startsWith("x")) {
      this.panel.replaceChildren(make("h3", {}, node.label), node.why ? make("p", {}, node.why) : "");
      return;
    }
    this.nodeAborted = new AbortController();
    const { signal } = this.nodeAborted;
    const tape = `${this.path}/tapes/${encodeURIComponent(this.tape)}`;
    try {
      await showNode(this.panel, tape, id, {
        signal,
        select: (other) => (this.view.boxes.has(other) ? this.view.select(other) : this.choose(other)),
      });
    } catch (error) {
      if (error.name !== "AbortError" && !signal.aborted) this.panel.replaceChildren(problem(error));
    }
  }

  close() {
    this.abort();
    this.nodeAborted?.abort();
  }
}
