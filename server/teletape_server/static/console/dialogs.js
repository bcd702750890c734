// Dialogs of the console: forms that ask the server for something, and say what it refuses.

import { make } from "./elements.js";
import { problem } from "./node.js";

let fields = 0;

/** A labelled field of a form, with what else is to be known of it; a unit comes after the field. */
export function field(text, input, note, unit) {
  const words = note ? make("span", { class: "soft", id: `note-${(fields += 1)}` }, note) : null;
  input.setAttribute("aria-label", text);
  if (words) input.setAttribute("aria-describedby", words.id);
  return make("label", {}, make("span", {}, text), make("span", { class: unit ? "stack beside" : "stack" }, input, words));
}

/** A field to choose from: values by their texts. */
export const choice = (name, options, selected) =>
  make("select", { name }, ...Object.entries(options).map(([text, value]) => make("option", { value, selected: value === selected }, text)));

/**
 * Opens a dialog. It closes when `send` has succeeded and returned nothing; what it returns else takes the form's place.
 *
 * @param {{title: string, action: string, danger?: boolean, children: (Node | string)[],
 *   send: (form: HTMLFormElement) => Promise<Node | void>}} of
 */
export function ask({ title, action, danger, children, send }) {
  const answer = make("div", { role: "alert" });
  const button = make("button", { class: danger ? "danger" : "primary" }, action);
  const close = (text) => make("button", { type: "button", click: () => dialog.close() }, text);
  const form = make("form", { class: "publish asked" }, make("h2", {}, title), ...children, answer, make("div", { class: "row" }, close("Cancel"), button));
  const before = document.activeElement;
  const dialog = make("dialog", { "aria-label": title, close: () => (dialog.remove(), before?.focus()) }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      const shown = await send(form);
      if (!shown) dialog.close();
      else {
        const done = close("Done");
        dialog.replaceChildren(make("div", { class: "publish" }, make("h2", {}, title), shown, make("div", { class: "row" }, done)));
        done.focus();
      }
    } catch (error) {
      answer.replaceChildren(problem(error));
    } finally {
      button.disabled = false;
    }
  });
  document.body.append(dialog);
  dialog.showModal();
}
