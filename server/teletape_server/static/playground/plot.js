// Plots: lines of values and gradients, heat maps of matrices, points with a decision boundary. Drawn as SVG.

import { contours, extent, line, scaleLinear } from "../vendor/d3/d3.js";
import { short } from "./numbers.js";

const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== undefined) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/** Ends of an axis, with room; a flat line gets some too. */
function padded([low, high], share = 0.08) {
  if (low === undefined) return [-1, 1];
  const room = (high - low) * share || Math.abs(high) * 0.2 || 1;
  return [low - room, high + room];
}

/** Ends without the spikes of poles: the middle 96 % of the numbers, if the rest is far away. */
function calm(numbers) {
  const sorted = numbers.filter(Number.isFinite).sort((a, b) => a - b);
  if (!sorted.length) return [-1, 1];
  const at = (share) => sorted[Math.round(share * (sorted.length - 1))];
  const [low, high] = [at(0.02), at(0.98)];
  const [least, most] = extent(sorted);
  return most - least > 6 * (high - low) && high > low ? [low, high] : [least, most];
}

function axes(box, x, y, { xLabel = "", ticks = 5 } = {}) {
  const group = element("g", { class: "axes" });
  for (const tick of y.ticks(ticks)) {
    group.append(element("line", { class: tick === 0 ? "zero" : "grid", x1: box.left, x2: box.right, y1: y(tick), y2: y(tick) }));
    group.append(element("text", { x: box.left - 6, y: y(tick) + 4, "text-anchor": "end" }, short(tick)));
  }
  for (const tick of x.ticks(ticks + 1)) group.append(element("text", { x: x(tick), y: box.bottom + 16, "text-anchor": "middle" }, short(tick)));
  group.append(element("text", { class: "axis-name", x: box.right, y: box.bottom + 30, "text-anchor": "end" }, xLabel));
  return group;
}

function svgOf(parent, height, label) {
  const width = Math.max(parent.clientWidth, 240);
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
  parent.replaceChildren(svg);
  return [svg, width];
}

/**
 * Values and gradients over an input; a click or an arrow key moves the input.
 *
 * @param {HTMLElement} parent
 * @param {{points: number[], values: number[][], gradients: (number|null)[], at: number, name: string, target: string}} data
 * @param {(value: number) => void} onMove
 */
export function drawLines(parent, { points, values, gradients, at, name, target }, onMove) {
  const height = 230;
  const hasGradient = gradients.some((gradient) => gradient !== null);
  const [svg, width] = svgOf(parent, height, `${target} and its gradient over ${name}, from ${short(points[0])} to ${short(points.at(-1))}`);
  const box = { left: 48, right: width - 12, top: 10, bottom: height - 36 };
  const x = scaleLinear([points[0], points.at(-1)], [box.left, box.right]);
  const everything = [...values.flat(), ...(hasGradient ? gradients.filter((gradient) => gradient !== null) : [])];
  const y = scaleLinear(padded(calm(everything)), [box.bottom, box.top]);
  const clip = element("clipPath", { id: "plot-box" }, element("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top }));
  svg.append(clip, axes(box, x, y, { xLabel: name }));
  const path = (numbers) => line().defined((_, i) => Number.isFinite(numbers[i])).x((_, i) => x(points[i])).y((_, i) => y(numbers[i]))(numbers);
  const lines = element("g", { "clip-path": "url(#plot-box)" });
  if (hasGradient) lines.append(element("path", { class: "line gradient", d: path(gradients.map((gradient) => gradient ?? NaN)) }));
  values[0].forEach((_, k) => lines.append(element("path", { class: `line value ${k ? "further" : ""}`, d: path(values.map((row) => row[k])) })));
  svg.append(lines);
  const cursor = element("line", { class: "cursor", x1: x(at), x2: x(at), y1: box.top, y2: box.bottom });
  svg.append(cursor);
  const nearest = points.reduce((best, point, i) => (Math.abs(point - at) < Math.abs(points[best] - at) ? i : best), 0);
  const dots = [...(hasGradient ? [[gradients[nearest], "gradient"]] : []), [values[nearest][0], "value"]];
  for (const [number, kind] of dots)
    if (Number.isFinite(number)) lines.append(element("circle", { class: `dot ${kind}`, cx: x(points[nearest]), cy: y(number), r: 4 }));
  const move = (event) => {
    const place = svg.getBoundingClientRect();
    const to = x.invert(((event.clientX - place.left) * width) / place.width);
    onMove(Math.min(Math.max(to, points[0]), points.at(-1)));
  };
  svg.addEventListener("pointerdown", (event) => {
    move(event);
    parent.setPointerCapture?.(event.pointerId);
    parent.onpointermove = move;
    parent.onpointerup = () => (parent.onpointermove = parent.onpointerup = null);
  });
}

/** Mixes two colours of the theme: the tint of a number between −1 and 1. */
function tint(share) {
  const kind = share < 0 ? "low" : "high";
  return { class: `cell ${kind}`, "fill-opacity": Math.min(Math.abs(share), 1).toFixed(3) };
}

/**
 * A matrix as coloured cells: zero is the paper's colour, negative and positive numbers have two others.
 *
 * @param {HTMLElement} parent
 * @param {{numbers: number[], rows: number, columns: number, label: string, rowName: string, columnName: string}} data
 */
export function drawHeatMap(parent, { numbers, rows, columns, label, rowName, columnName }) {
  const available = Math.max(parent.clientWidth, 240);
  const cell = Math.max(Math.min((available - 70) / columns, 340 / rows, 56), 2);
  const [left, top] = [56, 26];
  const height = top + rows * cell + 46;
  const [svg] = svgOf(parent, height, `${label}: ${rows} by ${columns}`);
  const most = Math.max(...numbers.filter(Number.isFinite).map(Math.abs), 0);
  numbers.forEach((number, index) => {
    const [row, column] = [Math.floor(index / columns), index % columns];
    const [x, y] = [left + column * cell, top + row * cell];
    const isFinite = Number.isFinite(number);
    const title = element("title", {}, `${rowName}[${row}], ${columnName}[${column}]: ${short(number)}`);
    const size = cell > 8 ? cell - 1.5 : cell;
    svg.append(element("rect", { x, y, width: size, height: size, rx: cell > 16 ? 3 : 0, class: "cell-back" }));
    svg.append(element("rect", { x, y, width: size, height: size, rx: cell > 16 ? 3 : 0, ...(isFinite ? tint(most ? number / most : 0) : { class: "cell bad" }) }, title));
    if (cell >= 44) {
      const strong = isFinite && most && Math.abs(number) / most > 0.55;
      svg.append(element("text", { class: `cell-text ${strong ? "strong" : ""}`, x: x + size / 2, y: y + size / 2 + 4, "text-anchor": "middle" }, short(number)));
    }
  });
  svg.append(element("text", { class: "axis-name", x: left, y: 16 }, `${columnName} →`));
  svg.append(element("text", { class: "axis-name", x: left - 8, y: top + 14, "text-anchor": "end" }, `${rowName} ↓`));
  const scale = element("g", { transform: `translate(${left},${height - 22})` });
  for (let i = 0; i < 21; i += 1) scale.append(element("rect", { x: i * 7, y: 0, width: 7, height: 8, ...tint((i - 10) / 10) }));
  for (const [x, number, anchor] of [[0, -most, "start"], [73, 0, "middle"], [147, most, "end"]])
    scale.append(element("text", { x, y: 20, "text-anchor": anchor }, short(number)));
  svg.append(scale);
}

/**
 * Points of two classes over the classifier's output.
 *
 * @param {HTMLElement} parent
 * @param {{points: number[][], labels: number[], grid: number[], size: number, range: [number, number]}} data - the
 *   output at size × size places of the square `range`, row by row from its lower edge; its sign is the class.
 */
export function drawBoundary(parent, { points, labels, grid, size, range }) {
  const side = Math.min(Math.max(parent.clientWidth, 240), 380);
  const [svg] = svgOf(parent, side, "The points of both classes, and where the classifier's decision changes");
  svg.setAttribute("width", side);
  svg.setAttribute("viewBox", `0 0 ${side} ${side}`);
  const x = scaleLinear(range, [0, side]);
  const y = scaleLinear(range, [side, 0]);
  const ring = (points_) => `M${points_.map(([i, j]) => `${((i - 0.5) / (size - 1)) * side},${side - ((j - 0.5) / (size - 1)) * side}`).join("L")}Z`;
  const path = (shape) => shape.coordinates.flatMap((polygon) => polygon.map(ring)).join("");
  const squashed = grid.map((number) => Math.tanh(number));
  svg.append(element("rect", { width: side, height: side, class: "cell-back" }));
  for (const level of [-0.75, -0.4, 0, 0.4, 0.75]) {
    const above = contours().size([size, size]).thresholds([level])(squashed)[0];
    svg.append(element("path", { d: path(above), class: "region high", "fill-rule": "evenodd" }));
    const below = contours().size([size, size]).thresholds([level])(squashed.map((number) => -number))[0];
    svg.append(element("path", { d: path(below), class: "region low", "fill-rule": "evenodd" }));
    if (level === 0) svg.append(element("path", { d: path(above), class: "boundary" }));
  }
  points.forEach((point, i) => svg.append(element("circle", { class: labels[i] > 0.5 ? "point high" : "point low", cx: x(point[0]), cy: y(point[1]), r: 4 })));
}

/** One line of numbers over their positions, such as losses. */
export function drawSeries(parent, numbers, label) {
  const height = 120;
  const [svg, width] = svgOf(parent, height, `${label}, ${numbers.length} steps, at last ${short(numbers.at(-1))}`);
  const box = { left: 48, right: width - 12, top: 8, bottom: height - 34 };
  const x = scaleLinear([0, Math.max(numbers.length - 1, 1)], [box.left, box.right]);
  const y = scaleLinear(padded([Math.min(0, ...numbers), Math.max(...numbers)], 0.05), [box.bottom, box.top]);
  svg.append(axes(box, x, y, { xLabel: "step", ticks: 3 }));
  svg.append(element("path", { class: "line value", d: line().x((_, i) => x(i)).y((number) => y(number))(numbers) }));
}
