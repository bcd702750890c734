// "Publish this": the formula of the page becomes a function of the server, under a name.

import { element } from "./inputs.js";
import { shapeOf } from "./numbers.js";
import { publish } from "./server.js";

const $ = (id) => document.getElementById(id);
let shown = ""; // the inputs that there are boxes for

/** Shows a box for each input: what callers give. At first these are the inputs without a value in the text. */
export function showPublishing(isFormula, inputs, defaults) {
  const names = Object.keys(inputs);
  $("publish-panel").classList.toggle("hidden", !isFormula || !names.length);
  if (names.join() === shown) return;
  shown = names.join();
  const open = names.filter((name) => defaults[name] === undefined);
  $("publish-inputs").replaceChildren(
    ...names.map((name) => element("label", {}, element("input", { type: "checkbox", name, checked: !open.length || open.includes(name) }), ` ${name}`)),
  );
  $("publish-text").replaceChildren();
}

/** The body of the request: each input is declared with the shape that it has now, or is a weight with its value. */
export function publication(text, inputs, given) {
  const facts = { function: { text }, inputs: {}, weights: {}, visibility: $("publish-for").value, examples: [{ inputs: {} }] };
  for (const [name, { value, dtype }] of Object.entries(inputs)) {
    const shape = shapeOf(value);
    if (given.has(name)) {
      facts.inputs[name] = { dtype, shape };
      facts.examples[0].inputs[name] = { dtype, shape, data: value };
    } else facts.weights[name] = { dtype, shape, data: value };
  }
  return facts;
}

/** Publishes what `current` returns, {text, inputs}, when the form is sent. */
export function startPublishing(current) {
  $("publish-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const given = new Set([...$("publish-inputs").querySelectorAll("input:checked")].map((box) => box.name));
    const { text, inputs } = current();
    $("publish").disabled = true;
    try {
      const facts = await publish($("publish-name").value, publication(text, inputs, given));
      const link = element("a", { href: `published#${encodeURIComponent(facts.name)}` }, facts.name);
      $("publish-text").replaceChildren("Published: ", link, ` @${facts.version.version}, ${facts.version.batched ? "computed together for several callers" : "computed call by call"}`);
    } catch (error) {
      $("publish-text").replaceChildren(element("span", { class: "bad" }, error.message));
    } finally {
      $("publish").disabled = false;
    }
  });
}
