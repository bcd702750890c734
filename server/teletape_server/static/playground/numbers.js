// Tensors as text: short forms for the picture, full ones for fields and copies.

/** A number of an answer; NaN and infinities come as strings. */
export const real = (value) => (typeof value === "string" ? Number(value) : value);

/** A number in at most about seven characters. */
export function short(value) {
  if (Array.isArray(value)) return `${short(value[0])}${value[1] < 0 ? "−" : "+"}${short(Math.abs(value[1]))}i`;
  const number = real(value);
  if (typeof number === "boolean") return String(number);
  if (!Number.isFinite(number)) return Number.isNaN(number) ? "NaN" : number > 0 ? "∞" : "−∞";
  if (number === 0) return "0";
  const size = Math.abs(number);
  const text = size >= 1e5 || size < 1e-3 ? number.toExponential(2) : String(Number(number.toPrecision(4)));
  return text.replace("-", "−").replace("e+", "e");
}

/** All elements in one list. */
export function flat(tensor) {
  if (!tensor) return [];
  if (tensor.values) return flat(tensor.values); // a sparse gradient
  return Array.isArray(tensor.data) ? tensor.data.flat(Infinity).map(real) : [real(tensor.data)];
}

export const sizeOf = (shape) => shape.reduce((product, length) => product * length, 1);

/** A tensor in one short line: its elements if they are few, else dtype and shape. */
export function line(tensor) {
  if (!tensor) return "none";
  if (tensor.values) return `sparse ${tensor.values.shape.join("×")}`;
  if (!tensor.shape.length) return short(Array.isArray(tensor.data) ? tensor.data[0] : tensor.data);
  if (tensor.shape.length === 1 && tensor.shape[0] <= 3) return `[${flat(tensor).map(short).join(", ")}]`;
  return `${tensor.dtype}[${tensor.shape.join("×")}]`;
}

/** A tensor with its elements, as far as they are readable. */
export function long(tensor) {
  if (!tensor) return "none";
  if (tensor.values) return `rows ${flat(tensor.indices).join(", ")}: ${long(tensor.values)}`;
  const show = (value) => (Array.isArray(value) ? `[${value.map(show).join(", ")}]` : short(value));
  const text = show(tensor.data);
  return text.length <= 400 ? text : `${text.slice(0, 400)} …`;
}

/** What is wrong with a tensor's numbers: "nan", "inf", "zero" (all of them), or "". */
export function oddity(tensor) {
  const numbers = flat(tensor);
  if (numbers.some((number) => Number.isNaN(number))) return "nan";
  if (numbers.some((number) => typeof number === "number" && !Number.isFinite(number))) return "inf";
  return numbers.length && numbers.every((number) => number === 0) ? "zero" : "";
}

/** The shape of nested lists; null if they are ragged or hold anything but numbers. */
export function shapeOf(value) {
  if (typeof value === "number") return [];
  if (!Array.isArray(value)) return null;
  const shapes = value.map(shapeOf);
  if (shapes.some((shape) => shape === null || String(shape) !== String(shapes[0]))) return null;
  return [value.length, ...(shapes[0] ?? [])];
}

/** Nested lists of a shape from a flat list. */
export function nested(elements, shape) {
  if (!shape.length) return elements[0];
  const [length, ...rest] = shape;
  const size = sizeOf(rest);
  return Array.from({ length }, (_, i) => nested(elements.slice(i * size, (i + 1) * size), rest));
}

/** A number or a list that a person typed; undefined if it is none. */
export function typed(text) {
  let value;
  try {
    value = JSON.parse(text.trim().replaceAll("−", "-").replace(/(^|[^\d])\./g, "$10."));
  } catch {
    return undefined;
  }
  return shapeOf(value) === null || sizeOf(shapeOf(value)) === 0 ? undefined : value;
}

/** A value of the page as the server takes it, with its dtype: JavaScript writes 2.0 as 2. */
export const tensor = (value, dtype = "float32") => ({ dtype, data: value });
