// What the console shows of one node of a tape's graph: spec, value, gradient, explanation.

import { request } from "../shared/api.js";
import { bytes, histogram, make, spec } from "./elements.js";

/**
 * Fills the panel of a node.
 *
 * @param {HTMLElement} panel
 * @param {string} tape - the path of the tape.
 * @param {string} id - of the node.
 * @param {{signal: AbortSignal, select: (id: string) => void}} options
 */
export async function showNode(panel, tape, id, { signal, select }) {
  const path = `${tape}/nodes/${encodeURIComponent(id)}`;
  const answer = make("div", { class: "answers", "aria-live": "polite" });
  panel.replaceChildren(make("p", { class: "soft" }, "Reading…"));
  const node = await request("GET", `${path}?bins=40`, undefined, { signal });
  const title = node.op ?? node.kind;
  const facts = [
    ["type", spec(node.dtype, node.shape)],
    ["bytes", bytes(node.bytes)],
    ["ids", node.names.map(String).join(", ") || "none"],
    ...(node.where ? [["line", node.where]] : []),
  ];
  const inputs = node.inputs.map((input) =>
    input.node === null
      ? make("span", { class: "soft" }, input.dtype ? `${input.name}: ${spec(input.dtype, input.shape)}` : `${input.name}: a number`)
      : make("button", { type: "button", class: "link", click: () => select(input.node) }, `${input.name}: ${spec(input.dtype, input.shape)}`),
  );
  const ask = (text, action) =>
    make("button", {
      type: "button",
      click: async (event) => {
        const button = event.currentTarget;
        button.disabled = true;
        answer.replaceChildren(make("p", { class: "soft" }, "Computing…"));
        try {
          answer.replaceChildren(...(await action()));
        } catch (error) {
          if (error.name !== "AbortError") answer.replaceChildren(problem(error));
        } finally {
          button.disabled = false;
        }
      },
    }, text);
  panel.replaceChildren(
    make("h3", {}, title, make("span", { class: "soft" }, ` ${node.node}`)),
    make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])),
    inputs.length ? make("p", { class: "inputs" }, "from ", ...inputs) : null,
    node.value ? histogram(node.value) : make("p", { class: "soft" }, "Its value is gone: no id names it, and no gradient needs it."),
    make(
      "div",
      { class: "row" },
      ask("Gradient of this", async () => (await request("GET", `${path}/gradient`, undefined, { signal })).derivatives.map(derivative)),
      ask("Explain", async () => (await request("GET", `${path}/explain`, undefined, { signal })).explanations.map(explanation)),
    ),
    answer,
  );
}

/** A problem of the server as an element. */
export function problem(error) {
  return make("div", { class: "problem", role: "alert" }, make("b", {}, error.code ?? "error"), ` ${error.message}`);
}

const source = (entry) => (entry.name && !/^[0-9]+$/.test(entry.name) ? entry.name : `${entry.source}`);

function derivative(entry) {
  const heading = make("h4", {}, `by ${source(entry)}`, make("span", { class: "soft" }, ` ${spec(entry.dtype, entry.shape)} ${entry.kind === "slices" ? "sparse" : ""}`));
  if (entry.value) return make("section", { class: "answer", "data-source": source(entry) }, heading, histogram(entry.value));
  return make("section", { class: "answer none", "data-source": source(entry) }, heading, ...reason(entry.why ?? { code: "none", message: "there is no gradient", advice: "" }, "None"));
}

function explanation(entry) {
  const calm = entry.outcome === "gradient" && entry.code === "connected";
  const heading = make("h4", {}, `by ${source(entry)}`);
  return make("section", { class: calm ? "answer" : "answer none", "data-source": source(entry) }, heading, ...reason(entry, calm ? null : entry.code));
}

function reason(why, label) {
  return [
    make("p", {}, label ? make("b", { class: "bad" }, `${label} `) : null, why.message),
    why.where ? make("p", { class: "soft" }, make("code", {}, why.where)) : null,
    why.advice ? make("p", { class: "soft" }, why.advice) : null,
  ].filter((part) => part !== null);
}
