/** Tensors as typed arrays. */

/**
 * @typedef {Float32Array | Float64Array | Int8Array | Int16Array | Int32Array | BigInt64Array | Uint8Array |
 *   Uint16Array | Uint32Array | BigUint64Array} TypedArray
 * @typedef {number | boolean | string} Element - of a list: a number; "NaN", "Infinity" or "-Infinity".
 * @typedef {Element | readonly any[]} NestedArray - numbers in nested lists.
 */

/** The array for each dtype. 16-bit floats are their bits; a complex number is two floats, one after the other. */
const ARRAYS = {
  float32: Float32Array,
  float64: Float64Array,
  float16: Uint16Array,
  bfloat16: Uint16Array,
  complex64: Float32Array,
  complex128: Float64Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
  bool: Uint8Array,
};

/** @typedef {keyof typeof ARRAYS} Dtype */

/** A tensor: a dtype, a shape and its elements in row-major order. */
export class Tensor {
  /**
   * @param {TypedArray | NestedArray} data - elements in row-major order, or nested lists of numbers.
   * @param {{dtype?: Dtype, shape?: number[]}} [options] - without a dtype: that of the typed array, or float32
   *   (bool for true and false); without a shape: that of the nested lists, or one axis.
   * @throws {TypeError} There is no such dtype, or the array is not of this dtype.
   * @throws {RangeError} The shape needs another number of elements.
   */
  constructor(data, { dtype, shape } = {}) {
    const typed = ArrayBuffer.isView(data) ? /** @type {TypedArray} */ (data) : null;
    const [flat, nesting] = flattened(typed ? [] : /** @type {NestedArray} */ (data));
    /** @type {Dtype} */
    this.dtype = dtype ?? dtypeOf(typed ?? flat);
    const constructor = ARRAYS[this.dtype];
    if (!constructor) throw new TypeError(`dtype must be one of ${Object.keys(ARRAYS).join(", ")}; found ${dtype}`);
    if (typed && !(typed instanceof constructor)) {
      throw new TypeError(`dtype ${this.dtype} needs a ${constructor.name}; found a ${typed.constructor.name}`);
    }
    const width = this.dtype.startsWith("complex") ? 2 : 1;
    /** @type {number[]} */
    this.shape = shape ?? (typed ? [typed.length / width] : width === 2 ? nesting.slice(0, -1) : nesting);
    /** The elements. @type {TypedArray} */
    this.data = typed ?? elements(constructor, flat, this.dtype);
    const count = this.shape.reduce((product, length) => product * length, width);
    if (this.data.length !== count) {
      throw new RangeError(`shape [${this.shape}] needs ${count} elements; found ${this.data.length}`);
    }
  }

  /** The number of bytes of the elements. */
  get byteLength() {
    return this.data.byteLength;
  }

  /** The bytes of the elements, little-endian; not a copy. */
  get bytes() {
    return new Uint8Array(this.data.buffer, this.data.byteOffset, this.data.byteLength);
  }

  /**
   * Returns the tensor with these bytes.
   *
   * @param {ArrayBuffer} buffer - little-endian, row-major.
   * @param {Dtype} dtype
   * @param {number[]} shape
   */
  static fromBytes(buffer, dtype, shape) {
    return new Tensor(new ARRAYS[dtype](buffer), { dtype, shape });
  }

  /** The only element of a tensor with one element, as a number. */
  item() {
    if (this.data.length !== 1) throw new RangeError(`item() needs one element; found shape [${this.shape}]`);
    return Number(this.data[0]);
  }

  /** Returns the elements as nested lists. @returns {any} */
  toArray() {
    const width = this.dtype.startsWith("complex") ? [2] : [];
    /** @type {any[]} */
    let level = Array.from(/** @type {ArrayLike<any>} */ (this.data));
    if (this.dtype === "bool") level = level.map(Boolean);
    for (const length of [...this.shape, ...width].slice(1).reverse()) {
      level = Array.from({ length: length ? level.length / length : 0 }, (_, i) => level.slice(i * length, (i + 1) * length));
    }
    return this.shape.length + width.length ? level : level[0];
  }

  /** The tensor in a JSON body: its bytes as base64. */
  toJSON() {
    let binary = "";
    const { bytes } = this;
    for (let i = 0; i < bytes.length; i += 0x8000) binary += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
    return { dtype: this.dtype, shape: this.shape, encoding: "base64", data: btoa(binary) };
  }
}

/**
 * Returns an answer with tensors in place of their JSON.
 *
 * @param {any} value
 * @returns {any}
 */
export function withTensors(value) {
  if (Array.isArray(value)) return value.map(withTensors);
  if (value === null || typeof value !== "object") return value;
  if (typeof value.dtype === "string" && Array.isArray(value.shape) && "data" in value && value.complete !== false) {
    const { dtype, shape } = value;
    const flat = elements(ARRAYS[/** @type {Dtype} */ (dtype)], flattened(value.data)[0], dtype);
    return new Tensor(flat, { dtype, shape });
  }
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withTensors(member)]));
}

/**
 * @param {NestedArray} data
 * @returns {[unknown[], number[]]} the elements, and the lengths of the lists.
 */
function flattened(data) {
  /** @type {any[]} */
  let level = [data];
  const shape = [];
  while (Array.isArray(level[0])) {
    const { length } = level[0];
    if (!level.every((list) => Array.isArray(list) && list.length === length)) {
      throw new RangeError("nested lists of a tensor must all have the same length at the same depth");
    }
    shape.push(length);
    level = level.flat();
  }
  return [level, shape];
}

/**
 * @param {ArrayLike<unknown>} flat
 * @returns {Dtype}
 */
function dtypeOf(flat) {
  for (const [dtype, constructor] of Object.entries(ARRAYS)) {
    if (flat instanceof constructor) return /** @type {Dtype} */ (dtype);
  }
  return flat.length && typeof flat[0] === "boolean" ? "bool" : "float32";
}

/**
 * @param {any} constructor
 * @param {unknown[]} flat - numbers, booleans, or the words for what JSON cannot write.
 * @param {Dtype} dtype
 * @returns {TypedArray}
 */
function elements(constructor, flat, dtype) {
  if (dtype.endsWith("int64")) return constructor.from(flat, (/** @type {any} */ number) => BigInt(number));
  if (dtype === "float16" || dtype === "bfloat16") return constructor.from(flat.map(dtype === "float16" ? half : brain));
  return constructor.from(flat, Number);
}

const scratch = new DataView(new ArrayBuffer(4));

/** @param {unknown} number @returns {number} the bits of the nearest bfloat16; ties to even. */
function brain(number) {
  scratch.setFloat32(0, Number(number));
  const bits = scratch.getUint32(0);
  return Number.isNaN(Number(number)) ? 0x7fc0 : (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}

/** @param {unknown} number @returns {number} the bits of the nearest float16; ties to even. */
function half(number) {
  const value = Number(number);
  scratch.setFloat32(0, value);
  const sign = (scratch.getUint32(0) >>> 16) & 0x8000;
  const size = Math.abs(value);
  if (Number.isNaN(value)) return 0x7e00;
  if (size >= 65520) return sign | 0x7c00;
  const exponent = size < 2 ** -14 ? -14 : Math.floor(Math.log2(size));
  const step = 2 ** (exponent - 10);
  const scaled = size / step;
  const low = Math.floor(scaled);
  const isUp = scaled - low > 0.5 || (scaled - low === 0.5 && low % 2 === 1);
  const rounded = low + (isUp ? 1 : 0);
  return sign | (size < 2 ** -14 ? rounded : ((exponent + 15) << 10) + (rounded - 1024));
}
