// A chart of what was used when: bars for steps of time, and in each a part for every series.

import { SVG, make } from "./elements.js";

const [WIDTH, HEIGHT] = [900, 160];
const COLOURS = 7; // the classes of series in the style sheet; all further ones are `rest`
const chosen = new Map(); // the colour of each name, which it keeps

function colour(name, place) {
  if (!name || place >= COLOURS) return "rest";
  if (!chosen.has(name)) chosen.set(name, `series-${chosen.size % COLOURS}`);
  return chosen.get(name);
}

function shape(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** When a step began: the time of a short one, the day of a long one. */
function at(time, step) {
  const of = new Date(time);
  if (step < 3600_000) return of.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  const day = of.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  return step < 86400_000 ? `${day} ${of.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })}` : day;
}

/** The largest series, and one of all that have no colour of their own. */
function coloured(series) {
  const small = series.filter(({ name }, place) => !name || place >= COLOURS);
  if (small.length < 2) return series;
  const values = small[0].values.map((_, place) => small.reduce((sum, each) => sum + each.values[place], 0));
  return [...series.filter((each) => !small.includes(each)), { name: "", values, words: `${small.length} others` }];
}

/**
 * Draws a chart.
 *
 * @param {{label: string, began: number, step: number, steps: number, series: {name: string, values: number[]}[],
 *   text: (value: number) => string, total: (values: number[]) => string, line?: {value: number, text: string}}} of -
 *   label: what it shows; began: when the first step began, and step: its length, in milliseconds; series: the largest
 *   first; text: of a value; total: of a series; line: a value that is marked, such as what there is in all.
 */
export function chart({ label, began, step, steps, series: all, text, total, line }) {
  const series = coloured(all);
  if (!series.length) return make("p", { class: "soft" }, `Nothing since ${at(began, step)}.`);
  const sums = Array.from({ length: steps }, (_, place) => series.reduce((sum, { values }) => sum + values[place], 0));
  const top = Math.max(line?.value ?? 0, ...sums);
  const width = WIDTH / steps;
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": `${label}, from ${at(began, step)} until now. Its totals are listed below.` });
  for (let place = 0; place < steps; place += 1) {
    if (!sums[place]) continue;
    let floor = HEIGHT;
    const present = series.filter(({ values }) => values[place]);
    const words = present.map(({ name, words: others, values }) => `${name || others || "others"} ${text(values[place])}`);
    const column = shape("g", {}, Object.assign(shape("title", {}), { textContent: `${at(began + place * step, step)}: ${words.join(", ")}` }));
    series.forEach(({ name, values }, rank) => {
      if (!values[place]) return;
      const tall = (values[place] / top) * HEIGHT;
      floor -= tall;
      column.append(shape("rect", { class: colour(name, rank), x: place * width, y: floor, width: width - Math.min(1, width / 4), height: tall }));
    });
    svg.append(column);
  }
  if (line) svg.append(shape("line", { class: "limit", x1: 0, x2: WIDTH, y1: HEIGHT * (1 - line.value / top), y2: HEIGHT * (1 - line.value / top) }));
  const item = ({ name, words, values }, mark) => make("li", {}, mark, make("span", {}, name || words || "others"), make("span", { class: "soft" }, total(values)));
  const legend = series.map((each, rank) => item(each, make("span", { class: `mark ${colour(each.name, rank)}` })));
  const rest = all.length > series.length ? make("details", {}, make("summary", {}, `all ${all.length}`), make("ul", { class: "legend" }, ...all.map((each) => item(each, null)))) : null;
  const middle = began + (steps / 2) * step;
  return make(
    "div",
    { class: "chart" },
    make("div", { class: "axis soft" }, make("span", {}, line && line.value === top ? line.text : `${text(top)} at most`), line && line.value < top ? make("span", {}, `dashed: ${line.text}`) : null),
    svg,
    make("div", { class: "axis soft" }, make("span", {}, at(began, step)), make("span", {}, at(middle, step)), make("span", {}, "now")),
    make("ul", { class: "legend", "aria-label": `${label}: totals` }, ...legend),
    rest,
  );
}
