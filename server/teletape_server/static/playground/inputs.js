// The inputs of the program: a slider and a field for a number, a grid of fields for vectors and matrices.

import { nested, shapeOf, sizeOf, typed } from "./numbers.js";

const MOST_CELLS = 48;
const STEPS = 200; // of a slider

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key in node && typeof value !== "string") node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

const shown = (number) => String(Number(Number(number).toPrecision(6)));

/** The ends of a slider: those of the preset, or wide enough for the number. */
export function ends(number, range) {
  if (range) return [Math.min(range[0], number), Math.max(range[1], number)];
  const most = Math.max(5, 2 * Math.abs(number));
  return [-most, most];
}

/** The rows of all inputs; rows are made anew only if names or shapes differ. */
export class Inputs {
  /**
   * @param {HTMLElement} parent
   * @param {(name: string, value: number|number[]) => void} onChange
   */
  constructor(parent, onChange) {
    this.parent = parent;
    this.onChange = onChange;
    this.structure = "";
    this.updates = new Map();
  }

  /** Shows inputs: [{name, value, dtype, range}]. */
  set(inputs) {
    const structure = JSON.stringify(inputs.map(({ name, value, dtype, range }) => [name, shapeOf(value), dtype, range]));
    if (structure !== this.structure) {
      this.structure = structure;
      this.updates.clear();
      this.parent.replaceChildren(...inputs.map((input) => this._row(input)));
      if (!inputs.length) this.parent.append(element("p", { class: "soft" }, "This program has no inputs."));
    }
    for (const { name, value } of inputs) this.updates.get(name)?.(value);
  }

  _row({ name, value, dtype, range }) {
    const shape = shapeOf(value);
    const cells = sizeOf(shape);
    const row = element("div", { class: "input-row", "data-input": name, role: "group", "aria-label": `Input ${name}` });
    const label = element("label", { class: "input-name", for: `input-${name}` }, name);
    if (!shape.length) row.append(label, ...this._number(name, value, dtype, range));
    else if (cells <= MOST_CELLS && shape.length <= 2 && shape.at(-1) <= 8) row.append(label, this._grid(name, value, shape, dtype));
    else row.append(label, this._summary(name, value, shape, dtype));
    return row;
  }

  _number(name, value, dtype, range) {
    const [min, max] = ends(value, range);
    const step = dtype === "int32" ? 1 : Number(((max - min) / STEPS).toPrecision(2));
    const slider = element("input", { type: "range", min: String(min), max: String(max), step: String(step), "aria-label": `${name}, slider` });
    const field = element("input", { type: "text", inputmode: "decimal", class: "number", id: `input-${name}`, autocomplete: "off" });
    slider.addEventListener("input", () => this.onChange(name, Number(slider.value)));
    this._field(field, (next) => this.onChange(name, next));
    this.updates.set(name, (next) => {
      slider.value = String(next);
      if (document.activeElement !== field) field.value = shown(next);
    });
    return [slider, field];
  }

  /** A field that takes a number, or a list if the caller does; Up and Down change the number. */
  _field(field, change, { lists = true } = {}) {
    const read = () => {
      const next = typed(field.value);
      const isRight = next !== undefined && (lists || typeof next === "number");
      field.setAttribute("aria-invalid", String(!isRight));
      if (isRight) change(next);
    };
    field.addEventListener("input", read);
    field.addEventListener("keydown", (event) => {
      const by = { ArrowUp: 1, ArrowDown: -1 }[event.key];
      const now = typed(field.value);
      if (!by || typeof now !== "number") return;
      event.preventDefault();
      field.value = shown(now + by * (event.shiftKey ? 1 : 0.1));
      read();
    });
  }

  _grid(name, value, shape, dtype) {
    const columns = shape.at(-1);
    const cells = sizeOf(shape);
    const grid = element("div", { class: "input-grid", "data-columns": String(columns === 1 ? Math.min(cells, 4) : columns > 6 ? 4 : columns) });
    const fields = [value].flat(Infinity).map((_, index) => {
      const place = shape.length === 1 ? index : `${Math.floor(index / columns)}, ${index % columns}`;
      const attributes = { type: "text", inputmode: "decimal", class: "number", "aria-label": `${name}[${place}]`, autocomplete: "off" };
      const field = element("input", index ? attributes : { ...attributes, id: `input-${name}` });
      this._field(
        field,
        (next) => {
          current[index] = dtype === "int32" ? Math.round(next) : next;
          this.onChange(name, nested(current, shape));
        },
        { lists: false },
      );
      return field;
    });
    let current = [value].flat(Infinity);
    grid.append(...fields);
    this.updates.set(name, (next) => {
      current = [next].flat(Infinity);
      fields.forEach((field, index) => {
        if (document.activeElement !== field) field.value = shown(current[index]);
      });
    });
    return grid;
  }

  /** A large tensor: its shape, and its numbers as a text that can be replaced. */
  _summary(name, value, shape, dtype) {
    const area = element("textarea", { rows: 2, id: `input-${name}`, spellcheck: "false", class: "number" });
    area.addEventListener("change", () => {
      const next = typed(area.value);
      area.setAttribute("aria-invalid", String(next === undefined));
      if (next !== undefined) this.onChange(name, next);
    });
    const numbers = (next) => JSON.stringify(next, (_, item) => (typeof item === "number" ? Number(item.toPrecision(4)) : item));
    this.updates.set(name, (next) => {
      if (document.activeElement !== area) area.value = numbers(next);
    });
    return element("div", { class: "input-large" }, element("span", { class: "soft" }, `${dtype}[${shape.join("×")}]`), area);
  }
}

export { element };
