// What a session holds besides tapes: its functions with their steps, and its variables.

import { bytes, count, make, spec } from "./elements.js";
import { problem } from "./node.js";
import { publishButton } from "./publishing.js";
import { read } from "./reads.js";

const MOST = 50; // of each kind: who has more reads them by the API

const operand = (input) => (typeof input === "string" ? input : JSON.stringify(input));

/** A step of a function as a line: `y = matmul(x, w)`. */
function stepLine({ op, do: verb, inputs = [], outputs = [], attrs = {}, where, ...others }) {
  const named = verb ? Object.entries(others).filter(([, value]) => typeof value !== "object") : Object.entries(attrs);
  const given = [...inputs.map(operand), ...named.map(([name, value]) => `${name}=${JSON.stringify(value)}`)];
  return `${outputs.length ? `${outputs.join(", ")} = ` : ""}${op ?? verb}(${given.join(", ")})${where ? `  # ${where}` : ""}`;
}

function functionRow({ id, inputs, outputs, assigns, size, steps }, publish) {
  const changes = assigns.length ? `, assigns ${assigns.join(", ")}` : "";
  const title = make("summary", {}, make("b", {}, `${id}(${inputs.join(", ")})`), ` → ${outputs.join(", ")}`, make("span", { class: "soft" }, `  ${count(size)} ${size === 1 ? "step" : "steps"}${changes}`));
  return make("details", { "data-function": id }, title, make("pre", {}, steps.map(stepLine).join("\n")), publish);
}

function variableRow({ id, name, dtype, shape, bytes: size, version, trainable }) {
  const title = name && name !== String(id) ? `${id} (${name})` : String(id);
  const facts = [spec(dtype, shape), bytes(size), `version ${count(version)}`, ...(trainable ? [] : ["not trainable"])];
  return make("div", { "data-variable": id }, make("b", {}, title), make("span", { class: "soft" }, ` ${facts.join(" · ")}`));
}

/** The functions and variables of a session, as a part of the page. */
export class Contents {
  /**
   * @param {string} path - of the session.
   * @param {string | null} own - the session's id, if it is the caller's own: its functions can be published.
   */
  constructor(path, own) {
    this.path = path;
    this.own = own;
    this.aborted = new AbortController();
    this.element = make("section", { class: "contents", "aria-label": "Functions and variables" });
  }

  async load() {
    this.close();
    this.aborted = new AbortController();
    const { signal } = this.aborted;
    const listed = (kind) => read(`${this.path}/${kind}?limit=${MOST}`, signal);
    try {
      const [functions, variables] = await Promise.all([listed("functions"), listed("variables")]);
      const open = new Set([...this.element.querySelectorAll("details[open]")].map((row) => row.dataset.function));
      const ids = new Set(variables.variables.map((variable) => String(variable.id)));
      const publish = (facts) => (this.own && !facts.assigns.length ? publishButton(this.own, facts, ids) : null);
      const list = (title, entries, next, row) =>
        entries.length ? [make("h3", {}, `${title} `, make("span", { class: "soft" }, next ? `the first ${MOST}` : count(entries.length))), ...entries.map(row)] : [];
      this.element.replaceChildren(
        ...list("Functions", functions.functions, functions.next, (facts) => functionRow(facts, publish(facts))),
        ...list("Variables", variables.variables, variables.next, variableRow),
      );
      for (const row of this.element.querySelectorAll("details")) row.open = open.has(row.dataset.function);
    } catch (error) {
      if (!signal.aborted && error.name !== "AbortError") this.element.replaceChildren(problem(error));
    }
  }

  close() {
    this.aborted.abort();
  }
}
