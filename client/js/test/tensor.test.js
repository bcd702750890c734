import assert from "node:assert/strict";
import test from "node:test";

import { Tensor } from "../src/index.js";
import { withTensors } from "../src/tensor.js";

const bits = (numbers, dtype) => [...new Tensor(numbers, { dtype }).data];

test("nested lists become a typed array with a shape", () => {
  const tensor = new Tensor([[1, 2, 3], [4, 5, 6]]);
  assert.equal(tensor.dtype, "float32");
  assert.deepEqual(tensor.shape, [2, 3]);
  assert.deepEqual(tensor.data, new Float32Array([1, 2, 3, 4, 5, 6]));
  assert.deepEqual(tensor.toArray(), [[1, 2, 3], [4, 5, 6]]);
});

test("a typed array is not copied, and gives the dtype", () => {
  const data = new Float64Array([1, 2, 3, 4]);
  const tensor = new Tensor(data, { shape: [2, 2] });
  assert.equal(tensor.data, data);
  assert.equal(tensor.dtype, "float64");
  assert.equal(new Tensor(new BigInt64Array(3)).dtype, "int64");
  assert.equal(new Tensor([true, false]).dtype, "bool");
});

test("a number is a tensor without axes", () => {
  assert.deepEqual(new Tensor(2.5).shape, []);
  assert.equal(new Tensor(2.5).item(), 2.5);
  assert.equal(new Tensor(2.5).toArray(), 2.5);
});

test("complex numbers are pairs", () => {
  const tensor = new Tensor([[1, 2], [3, 4]], { dtype: "complex64" });
  assert.deepEqual(tensor.shape, [2]);
  assert.deepEqual(tensor.toArray(), [[1, 2], [3, 4]]);
  assert.deepEqual(new Tensor(new Float32Array(6), { dtype: "complex64" }).shape, [3]);
});

test("16-bit floats are rounded to nearest, ties to even", () => {
  assert.deepEqual(bits([0, -0, 1, -2, 65504, 65519, 65520, 1 / 0, 2 ** -24, 2 ** -25, 2 ** -14], "float16"), [
    0, 0x8000, 0x3c00, 0xc000, 0x7bff, 0x7bff, 0x7c00, 0x7c00, 1, 0, 0x0400,
  ]);
  assert.deepEqual(bits([2049, 2051, 0.1], "float16"), [0x6800, 0x6802, 0x2e66]);
  assert.deepEqual(bits([1, -1, 1.00390625, 1 / 0, NaN], "bfloat16"), [0x3f80, 0xbf80, 0x3f80, 0x7f80, 0x7fc0]);
});

test("what does not fit is refused", () => {
  assert.throws(() => new Tensor([[1, 2], [3]]), /same length at the same depth/);
  assert.throws(() => new Tensor([1, 2, 3], { shape: [2, 2] }), /needs 4 elements; found 3/);
  assert.throws(() => new Tensor(new Float32Array(2), { dtype: "float64" }), /needs a Float64Array; found a Float32Array/);
  assert.throws(() => new Tensor([1], { dtype: "float8" }), /dtype must be one of/);
  assert.throws(() => new Tensor([1, 2]).item(), /one element/);
});

test("answers hold tensors in place of their JSON", () => {
  const answer = withTensors({ values: { y: { dtype: "float32", shape: [2], data: ["NaN", 1.5] }, dx: null }, n: 3 });
  assert.ok(answer.values.y instanceof Tensor);
  assert.deepEqual(answer.values.y.toArray(), [NaN, 1.5]);
  assert.equal(answer.values.dx, null);
  assert.equal(answer.n, 3);
});
