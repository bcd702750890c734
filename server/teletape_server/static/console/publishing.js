// "Publish…": a function of the session becomes one of the server, under a name, for callers without a session.

import { request } from "../shared/api.js";
import { make } from "./elements.js";
import { problem } from "./node.js";

const DECLARED = /^([a-z]+[0-9]*)?\s*\[([^\]]*)\]$/; // float32[batch, 2], or [n]

/** What a caller gives for an input, from a text such as `float32[n, 2]`. */
function declaration(name, text) {
  const match = DECLARED.exec(text.trim());
  if (!match) throw new Error(`${name}: ${text || "nothing"} is neither a declaration, such as float32[n, 2], nor = and a variable, such as = ${name}`);
  const lengths = match[2].split(",").map((length) => length.trim()).filter(Boolean);
  return { dtype: match[1] ?? "float32", shape: lengths.map((length) => (/^[0-9]+$/.test(length) ? Number(length) : length)) };
}

/** The body of the request, from the texts of the inputs: declarations, or `= w` for the variable w as a weight. */
function publication(id, texts, visibility) {
  const facts = { function: id, inputs: {}, weights: {}, visibility };
  for (const [name, text] of Object.entries(texts)) {
    if (text.trim().startsWith("=")) facts.weights[name] = text.trim().slice(1).trim();
    else facts.inputs[name] = declaration(name, text);
  }
  return facts;
}

/**
 * A button that opens the form. An input with the name of a variable is that variable, unless the form says otherwise.
 *
 * @param {string} session - the session's id.
 * @param {{id: string, inputs: string[]}} of - the function.
 * @param {Set<string>} variables - the ids of the session's variables.
 */
export function publishButton(session, { id, inputs }, variables) {
  const name = make("input", { name: "published", required: true, pattern: "[A-Za-z][A-Za-z0-9._\\-]*", value: id });
  const fields = inputs.map((input) => make("input", { name: input, required: true, value: variables.has(input) ? `= ${input}` : "float32[]" }));
  const visible = make("select", {}, make("option", { value: "me" }, "me"), make("option", { value: "everybody" }, "everybody"));
  const answer = make("div", { role: "status" });
  const send = make("button", { class: "primary" }, "Publish");
  const label = (text, field) => make("label", {}, make("span", {}, text), field);
  const form = make(
    "form",
    { class: "publish" },
    make("h2", {}, `Publish ${id}`),
    make("p", {}, "What do callers give? Such as ", make("code", {}, "float32[n, 2]"), ", where n is any length; or ", make("code", {}, "= w"), " for the value that the variable w has now."),
    label("name", name),
    ...inputs.map((input, position) => label(input, fields[position])),
    label("for", visible),
    answer,
    make("div", { class: "row" }, make("button", { type: "button", click: () => dialog.close() }, "Close"), send),
  );
  const dialog = make("dialog", { "aria-label": `Publish ${id}`, close: () => dialog.remove() }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    send.disabled = true;
    try {
      const texts = Object.fromEntries(inputs.map((input, position) => [input, fields[position].value]));
      const path = `v1/published/${encodeURIComponent(name.value)}?session=${encodeURIComponent(session)}`;
      const facts = await request("PUT", path, publication(id, texts, visible.value));
      answer.replaceChildren("Published: ", make("a", { href: `published#${encodeURIComponent(facts.name)}` }, facts.name), ` @${facts.version.version}`);
    } catch (error) {
      answer.replaceChildren(problem(error));
    } finally {
      send.disabled = false;
    }
  });
  return make(
    "button",
    {
      type: "button",
      click: () => {
        document.body.append(dialog);
        dialog.showModal();
      },
    },
    "Publish…",
  );
}
