// Elements of the console and texts of numbers: what its modules share.

/** Makes an element; children are nodes or texts, and null is left out. Attributes that are functions listen to events. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (key === "class") element.className = value;
    else if (value === true) element.setAttribute(key, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A number of bytes for people. */
export function bytes(count) {
  let [size, unit] = [count, "B"];
  for (const next of ["KiB", "MiB", "GiB", "TiB"]) {
    if (size < 1024) break;
    [size, unit] = [size / 1024, next];
  }
  return `${unit === "B" ? size : size.toFixed(size < 10 ? 1 : 0)} ${unit}`;
}

/** A number for people: at most four digits. */
export function number(value) {
  if (value === null) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-3) return value.toExponential(2).replace("-", "−").replace("e+", "e");
  return String(Number(value.toPrecision(4))).replace("-", "−");
}

export const count = (value) => value.toLocaleString("en");

/** How long it is until a time, or since then. */
export function duration(milliseconds) {
  const seconds = Math.max(0, Math.round(Math.abs(milliseconds) / 1000));
  if (seconds < 90) return `${seconds} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
}

/** A bar that shows a part of something. Returns it with a function that sets it: a part from 0 on, and its text. */
export function meter(label) {
  const fill = make("span", { class: "fill" });
  const bar = make("span", { class: "meter", role: "meter", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": 100 }, fill);
  return {
    bar,
    set(part, text) {
      fill.style.width = `${Math.min(100, part * 100)}%`;
      bar.classList.toggle("high", part > 0.85);
      bar.setAttribute("aria-valuenow", Math.round(part * 100));
      bar.setAttribute("aria-valuetext", text);
    },
  };
}

/** Seconds that were computed, for people. */
export function computed(seconds) {
  if (seconds < 0.005) return "0 s";
  if (seconds < 100) return `${number(Number(seconds.toPrecision(3)))} s`;
  if (seconds < 6000) return `${Number((seconds / 60).toPrecision(3))} min`;
  return `${seconds < 360_000 ? Number((seconds / 3600).toPrecision(3)) : count(Math.round(seconds / 3600))} h`;
}

/** A time of an answer for people: with the date if it is not of today; a text of its own without one. */
export function moment(text, without = "never") {
  if (!text) return without;
  const time = new Date(text);
  const options = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  if (time.toDateString() === new Date().toDateString()) return time.toLocaleTimeString("en-GB", options);
  if (time.getFullYear() !== new Date().getFullYear()) options.year = "numeric";
  return time.toLocaleDateString("en-GB", { ...options, day: "numeric", month: "short" });
}

/** A dtype and shape as text. */
export const spec = (dtype, shape) => (dtype ? `${dtype}${shape.length ? `[${shape.join("×")}]` : ""}` : "");

export const SVG = "http://www.w3.org/2000/svg";

/** A histogram as a picture, with its statistics as text. */
export function histogram(facts) {
  const box = make("div", { class: "histogram" });
  const range = facts.finite
    ? `${number(facts.minimum)} to ${number(facts.maximum)}, mean ${number(facts.mean)}, std ${number(facts.std)}`
    : "no finite element";
  if (facts.counts.length) {
    const [width, height] = [320, 72];
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `Histogram of ${count(facts.finite)} elements: ${range}`);
    const most = Math.max(...facts.counts);
    const step = width / facts.counts.length;
    facts.counts.forEach((elements, index) => {
      if (!elements) return;
      const bar = document.createElementNS(SVG, "rect");
      const tall = Math.max((elements / most) * height, 1.5);
      const sizes = { x: index * step + 0.5, y: height - tall, width: Math.max(step - 1, 0.5), height: tall };
      for (const [key, value] of Object.entries(sizes)) bar.setAttribute(key, value);
      const title = document.createElementNS(SVG, "title");
      title.textContent = `${count(elements)} from ${number(facts.edges[index])} to ${number(facts.edges[index + 1])}`;
      bar.append(title);
      svg.append(bar);
    });
    const axis = make("div", { class: "axis soft" }, make("span", {}, number(facts.edges[0])), make("span", {}, number(facts.edges.at(-1))));
    box.append(svg, axis);
  }
  box.append(make("p", { class: "soft" }, `${facts.of === "magnitude" ? "magnitudes: " : ""}${range}`));
  const unusual = [
    [facts.nan, "NaN"],
    [facts.positive_infinity, "+∞"],
    [facts.negative_infinity, "−∞"],
  ].filter(([elements]) => elements);
  if (unusual.length) box.append(make("p", { class: "bad" }, unusual.map(([elements, name]) => `${count(elements)} ${name}`).join(", ")));
  const share = facts.zeros ? `${count(facts.zeros)} zero, ` : "";
  box.append(make("p", { class: "soft" }, `${share}${count(facts.elements)} element${facts.elements === 1 ? "" : "s"}`));
  return box;
}
