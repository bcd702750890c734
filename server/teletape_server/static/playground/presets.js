// The gallery: states of the page that show something.

import { body } from "./copies.js";

const round = (number) => Math.round(number * 100) / 100;

/** The same numbers each time: a small generator, so that a preset is always the same picture. */
function random(seed) {
  let state = seed;
  return () => {
    state = (state * 1664525 + 1013904223) % 4294967296;
    return state / 4294967296;
  };
}

/** Two interleaved half circles, with a little noise: points and their classes. */
function moons(count) {
  const next = random(7);
  const noise = () => (next() + next() - 1) * 0.22;
  const points = [];
  const labels = [];
  for (let i = 0; i < count; i += 1) {
    const angle = (Math.PI * (i >> 1)) / (count / 2 - 1);
    const isUpper = i % 2 === 0;
    points.push(isUpper ? [Math.cos(angle) - 0.5 + noise(), Math.sin(angle) - 0.2 + noise()] : [0.5 - Math.cos(angle) + noise(), 0.2 - Math.sin(angle) + noise()].map(round));
    points[i] = points[i].map(round);
    labels.push([isUpper ? 1 : 0]);
  }
  return { points, labels };
}

function weights(rows, columns, seed) {
  const next = random(seed);
  return Array.from({ length: rows }, () => Array.from({ length: columns }, () => round((next() * 2 - 1) * 1.2)));
}

const program = (value) => `${body(value)}\n`;

const MAML = program({
  commands: [
    { do: "variable", id: "w", value: 0.5 },
    { do: "variable", id: "rate", value: 0.1 },
    { do: "tape.open", id: "outer" },
    { do: "tape.open", id: "inner", parents: ["outer"] },
    { do: "op", op: "sub", inputs: ["w", 2], outputs: ["error"] },
    { do: "op", op: "square", inputs: ["error"], outputs: ["train_loss"] },
    { do: "gradient", tape: "inner", targets: ["train_loss"], sources: ["w"], outputs: ["g"] },
    { do: "op", op: "mul", inputs: ["rate", "g"], outputs: ["update"] },
    { do: "op", op: "sub", inputs: ["w", "update"], outputs: ["adapted"] },
    { do: "op", op: "sub", inputs: ["adapted", 3], outputs: ["miss"] },
    { do: "op", op: "square", inputs: ["miss"], outputs: ["test_loss"] },
    { do: "gradient", tape: "outer", targets: ["test_loss"], sources: ["w", "rate"], outputs: ["dw", "drate"] },
  ],
  fetch: ["test_loss", "dw", "drate"],
});

const LOOP = program({
  commands: [
    { do: "variable", id: "r", value: 3.7 },
    {
      do: "function", id: "grow", inputs: ["x", "r"], outputs: ["next"],
      steps: [
        { op: "sub", inputs: [1, "x"], outputs: ["rest"] },
        { op: "mul", inputs: ["x", "rest"], outputs: ["product"] },
        { op: "mul", inputs: ["r", "product"], outputs: ["next"] },
      ],
    },
    { do: "op", op: "linspace", inputs: [0.01, 0.99], attrs: { num: 20000 }, outputs: ["start"] },
    { do: "scan", body: "grow", inputs: ["start", "r"], carried: 1, captured: 1, length: 1000000, outputs: ["x"] },
    { do: "op", op: "reduce_mean", inputs: ["x"], outputs: ["mean"] },
  ],
  fetch: ["mean"],
});

const CLASSIFIER = `# Two half circles: which of them is a point on?
hidden = tanh(points @ w1 + b1)
logit = hidden @ w2 + b2
loss = mean(sigmoid_cross_entropy(labels, logit))`;

/** What the page shows first. */
export const START = { mode: "expression", text: "y = sin(x) * x", values: { x: 2 } };

/** Presets by their name in the address: title, one sentence, and the state. */
export const PRESETS = {
  "none-by-round": {
    title: "None by round",
    about: "round has no gradient: everything before it is cut off.",
    state: { mode: "expression", text: "x = 2.7\nsteps = round(x * 2)\nloss = (steps - 3) ** 2" },
  },
  "dead-relu": {
    title: "Dead ReLU",
    about: "The input of relu is negative, so no gradient reaches w and b. Slide b up.",
    state: { mode: "expression", text: "x = [1, 2, 0.5]\nw = -1.5\nb = -0.4\nloss = sum(relu(w * x + b))", plot: "b" },
  },
  "saturated-sigmoid": {
    title: "Saturated sigmoid",
    about: "Far from zero sigmoid is so flat that its gradient is too small for float32: it is exactly zero.",
    state: { mode: "expression", text: "w = 40\nx = 3\ny = sigmoid(w * x)", ranges: { w: [-40, 40], x: [-5, 5] }, plot: "x" },
  },
  "double-where": {
    title: "The double where",
    about: "where hides the value of log at 0, but not its infinite slope: 0 × ∞ is NaN. Protect the argument too.",
    state: {
      mode: "expression",
      text: "x = 0\nunsafe = where(x > 0, log(x), 0)\n# safe = where(x > 0, log(where(x > 0, x, 1)), 0)",
      ranges: { x: [-2, 4] },
    },
  },
  newton: {
    title: "Newton's method",
    about: "Three steps of Newton for the root of a, and the derivative of the result: it is 1 / (2 √a).",
    state: {
      mode: "expression",
      text: "a = 2\nstart = 1\nx1 = (start + a / start) / 2\nx2 = (x1 + a / x1) / 2\nroot = (x2 + a / x2) / 2",
      ranges: { a: [0.1, 10], start: [0.2, 5] }, plot: "a",
    },
  },
  jacobian: {
    title: "Jacobian heat map",
    about: "Each class of a softmax by each logit: raising one lowers all others.",
    state: { mode: "expression", text: "z = [2, 1, 0.5, 0, -1, 1.5]\np = softmax(z)", kind: "jacobian", plot: "z[0]" },
  },
  hvp: {
    title: "Hessian times vector",
    about: "Rosenbrock's function: the curvature along one direction, without the matrix.",
    state: {
      mode: "expression",
      text: "x = [-0.5, 1]\nf = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2",
      kind: "hvp", vectors: { x: [1, 0.5] }, ranges: { x: [-2, 2] }, plot: "x[0]",
    },
  },
  maml: {
    title: "A MAML step",
    about: "The gradient of a loss after one step of training: a tape records another tape's gradient.",
    state: { mode: "program", text: MAML },
  },
  classifier: {
    title: "Train a classifier",
    about: "A small network learns two half circles; each request is forty steps of gradient descent.",
    state: {
      mode: "expression",
      text: CLASSIFIER,
      values: { ...moons(60), w1: weights(2, 8, 3), b1: Array(8).fill(0), w2: weights(8, 1, 5), b2: [0] },
      train: { variables: ["w1", "b1", "w2", "b2"], points: "points", labels: "labels", output: "logit", rate: 0.8, steps: 400 },
    },
  },
  loop: {
    title: "A loop with progress",
    about: "A million generations of 20,000 populations in one request, with progress and cancel.",
    state: { mode: "program", text: LOOP },
  },
};
