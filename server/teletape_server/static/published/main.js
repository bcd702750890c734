// The page of published functions: the list, what one takes, a form that asks for value and gradient, and a plot.

import { apiKey, request, setApiKey } from "../shared/api.js";
import { make, spec } from "../console/elements.js";
import { drawLines } from "../playground/plot.js";
import { flat, long } from "../playground/numbers.js";

const POINTS = 61; // of a plot: the server computes these calls together
const LENGTH = 2; // of an axis of any size, before there is an example

const $ = (id) => document.getElementById(id);
const pathOf = (name) => `v1/published/${encodeURIComponent(name)}`;
let turn = 0; // of the plot: what was asked for an earlier one is dropped

// ------------------------------------------------------------------------------------------------------------ the list
async function list() {
  const { published } = await request("GET", "v1/published");
  $("none").classList.toggle("hidden", published.length > 0);
  $("rows").replaceChildren(
    ...published.map((facts) =>
      make(
        "li",
        {},
        make(
          "button",
          { type: "button", class: "session-row", "data-name": facts.name, click: () => (location.hash = encodeURIComponent(facts.name)) },
          make("span", { class: "line" }, make("b", {}, facts.name), make("span", { class: "soft" }, facts.visibility)),
          make("span", { class: "line soft" }, facts.description || `of ${facts.owner}`),
        ),
      ),
    ),
  );
  await show();
}

async function show() {
  const name = decodeURIComponent(location.hash.slice(1));
  for (const row of document.querySelectorAll(".session-row")) row.toggleAttribute("aria-current", row.dataset.name === name.split("@")[0]);
  document.body.classList.toggle("chosen", Boolean(name));
  if (!name) return;
  const facts = await request("GET", pathOf(name));
  new Form(name, facts).show();
}

// ------------------------------------------------------------------------------------------------------------ the form
/** Nested lists of a shape, filled with ones; an axis with a name has the length 2. */
function ones(shape) {
  return shape.length ? Array.from({ length: typeof shape[0] === "number" ? shape[0] : LENGTH }, () => ones(shape.slice(1))) : 1;
}

/** The same nested lists with the element at a place, counted in row-major order, replaced. */
function replaced(value, place, number) {
  let left = place;
  const walk = (part) => (Array.isArray(part) ? part.map(walk) : left-- === 0 ? number : part);
  return walk(value);
}

const isFloat = ({ dtype }) => dtype.includes("float");

class Form {
  constructor(name, facts) {
    [this.name, this.facts, this.version] = [name, facts, facts.version];
    const example = this.version?.examples?.[0]?.inputs ?? {};
    this.fields = new Map(
      (this.version?.inputs ?? []).map((input) => [input.name, { input, area: make("textarea", { id: `input-${input.name}`, rows: 2, spellcheck: "false" }, JSON.stringify(example[input.name]?.data ?? ones(input.shape))) }]),
    );
    this.target = make("select", { id: "target", "aria-label": "Output to differentiate" }, ...(this.version?.outputs ?? []).filter(isFloat).map((output) => make("option", {}, output.name)));
    this.over = make("select", { id: "over", "aria-label": "Input of the plot", change: () => this.plot() });
    this.results = make("div", { "aria-live": "polite" });
    this.fault = make("div", { class: "problem hidden", role: "alert" });
    this.picture = make("div", { id: "plot" });
    this.figure = make("figure", { class: "plots hidden" }, make("figcaption", { class: "row" }, make("span", {}, make("b", { class: "value" }, "value"), " and ", make("b", { class: "gradient" }, "gradient"), " over"), this.over), this.picture);
  }

  show() {
    const { facts, version } = this;
    const parts = [make("h2", {}, facts.name, " ", make("span", { class: "soft" }, version ? `@${version.version}` : ""))];
    if (facts.description) parts.push(make("p", {}, facts.description));
    if (facts.damage) parts.push(make("p", { class: "problem" }, facts.damage));
    if (version) {
      const check = version.check ? `gradients checked: ${version.check.outcome ?? version.check.status ?? "agree"}` : "gradients not checked: it has no example";
      parts.push(
        make("p", { class: "soft" }, `of ${facts.owner}, for ${facts.visibility}; ${version.batched ? "calls of several callers are computed together" : `calls are computed one by one: ${version.why_not_batched}`}; ${check}. `, make("a", { href: `${pathOf(this.name)}/openapi.json` }, "OpenAPI")),
        ...[...this.fields.values()].map(({ input, area }) => make("div", { class: "field" }, make("label", { for: area.id }, input.name, " ", make("span", {}, spec(input.dtype, input.shape))), area)),
        make("div", { class: "row" }, make("button", { type: "button", class: "primary", id: "ask", click: () => this.ask() }, "Value and gradient"), make("label", { for: "target" }, "of"), this.target),
        this.fault,
        this.results,
        this.figure,
      );
    }
    $("function").replaceChildren(make("div", { class: "published" }, ...parts));
    if (version) this.ask();
  }

  values() {
    return Object.fromEntries(
      [...this.fields].map(([name, { area }]) => {
        try {
          return [name, JSON.parse(area.value)];
        } catch {
          throw new Error(`${name}: expected a number or nested lists of numbers in JSON`);
        }
      }),
    );
  }

  question(inputs) {
    const target = this.target.value;
    return request("POST", `${pathOf(this.name)}/${target ? "value_and_gradient" : "call"}`, target ? { inputs, targets: [target], fetch: this.version.outputs.map(({ name }) => name) } : { inputs });
  }

  async ask() {
    this.fault.classList.add("hidden");
    try {
      this.inputs = this.values();
      const answer = await this.question(this.inputs);
      this.showAnswer(answer);
      this.offerPlots();
      await this.plot();
    } catch (error) {
      this.fault.textContent = error.message;
      this.fault.classList.remove("hidden");
    }
  }

  showAnswer({ values, derivatives = [], batch, compute_seconds: seconds }) {
    const row = (name, tensor, kind) => make("tr", {}, make("th", { scope: "row" }, name), make("td", { class: kind }, tensor ? long(tensor) : "none"));
    const rows = Object.entries(values).map(([name, tensor]) => row(name, tensor, "value"));
    for (const { source, value } of derivatives) rows.push(row(`∂${this.target.value} / ∂${source}`, value, "gradient"));
    const note = batch ? `${batch.size === 1 ? "computed by itself" : `computed with ${batch.size - 1} others`}, waited ${(batch.waited_us / 1000).toFixed(1)} ms${seconds ? `, computed ${(seconds * 1000).toFixed(1)} ms` : ""}` : "";
    this.results.replaceChildren(make("table", {}, make("tbody", {}, ...rows)), make("p", { class: "soft" }, note));
  }

  /** Elements over which there can be a plot: the first eight of each input of floats. */
  offerPlots() {
    const chosen = this.over.value;
    const places = [...this.fields.values()].filter(({ input }) => isFloat(input)).flatMap(({ input: { name } }) => {
      const count = [this.inputs[name]].flat(Infinity).length;
      return Array.from({ length: Math.min(count, 8) }, (_, place) => [`${name}:${place}`, count > 1 ? `${name}, element ${place}` : name]);
    });
    this.over.replaceChildren(...places.map(([value, text]) => make("option", { value, selected: value === chosen }, text)));
    this.figure.classList.toggle("hidden", !places.length || !this.target.value);
  }

  async plot() {
    if (!this.over.value || !this.target.value) return;
    turn += 1;
    const [own, split] = [turn, this.over.value.lastIndexOf(":")];
    const [name, place] = [this.over.value.slice(0, split), Number(this.over.value.slice(split + 1))];
    const at = [this.inputs[name]].flat(Infinity)[place];
    const reach = Math.max(2, Math.abs(at));
    const points = Array.from({ length: POINTS }, (_, i) => at - reach + (2 * reach * i) / (POINTS - 1));
    const answers = await Promise.all(points.map((point) => this.question({ ...this.inputs, [name]: replaced(this.inputs[name], place, point) })));
    if (own !== turn) return;
    const target = this.target.value;
    const gradients = answers.map(({ derivatives }) => {
      const tensor = derivatives.find(({ source }) => source === name)?.value;
      return tensor ? flat(tensor)[place] : null;
    });
    drawLines(this.picture, { points, values: answers.map(({ values }) => flat(values[target]).slice(0, 8)), gradients, at, name, target }, () => {});
  }
}

// ------------------------------------------------------------------------------------------------------------- starting
async function start() {
  try {
    await list();
  } catch (error) {
    if (error.status === 401) {
      $("key-form").classList.remove("hidden");
      $("key-fault").textContent = apiKey() ? error.message : "";
    } else $("function").replaceChildren(make("div", { class: "problem", role: "alert" }, error.message));
  }
}

$("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setApiKey($("key").value.trim());
  $("key-form").classList.add("hidden");
  start();
});
addEventListener("hashchange", () => show().catch(start));
start();
