// From steps and results to the nodes and edges of the graph.

import { line, long, oddity, short } from "./numbers.js";

/** What a text writes for ops. */
export const SIGNS = {
  add: "+", sub: "−", mul: "×", div: "÷", neg: "−", pow: "power", matmul: "@", numpy_matmul: "@", reduce_sum: "sum", reduce_mean: "mean",
  greater: ">", less: "<", greater_equal: "≥", less_equal: "≤", equal: "=", strided_slice: "[ ]",
};

const constantText = (input) => (typeof input === "object" && input !== null ? ("number" in input ? short(input.number) : line({ dtype: "float32", shape: shapeOf(input.data ?? input), ...(Array.isArray(input) ? { data: input } : input) })) : short(input));
const shapeOf = (data) => (Array.isArray(data) ? [data.length, ...shapeOf(data[0])] : []);

/**
 * The graph of steps, with values and gradients on its edges.
 *
 * @param {{steps: object[], inputs: string[], values: object, gradients: object|null, target: string|null,
 *   why: object[], failure: object|null, named: Set<string>}} facts - gradients: by name, null is none; without
 *   gradients nothing is said about them. `named` are names that a person wrote.
 */
export function pictureOf({ steps, inputs, values, gradients: computed, target, why, failure, named }) {
  const gradients = failure ? null : computed; // a program that fails has no gradients: its edges say nothing of them
  const maker = new Map(inputs.map((name) => [name, `v:${name}`])); // name → node
  const dependent = new Set(inputs);
  const cuts = cutsOf(why, steps);
  const nodes = inputs.map((name) => ({ id: `v:${name}`, kind: "input", title: name, name, label: `input ${name}: ${long(values[name])}` }));
  const edges = [];
  steps.forEach((step, index) => {
    const id = `s:${index}`;
    const name = step.outputs[0];
    const isFailed = failure && failure.where ? failure.where === step.where : failure?.at?.outputs?.[0] === name && name !== undefined;
    const cut = cuts.get(index);
    const marks = [...(step.outputs.includes(target) ? ["target"] : []), ...(cut || isFailed ? ["cut"] : [])];
    const lines = [];
    if (step.folded) lines.push({ text: `${step.folded} ${step.folded === 1 ? "step" : "steps"}`, tone: "soft" });
    if (named.has(name)) lines.push({ text: name, tone: "soft" });
    if (step.outputs.includes(target) && values[target]) lines.push({ text: line(values[target]), tone: oddity(values[target]).match(/nan|inf/) ? "bad" : "value" });
    if (cut) lines.push({ text: { none: "✂ no gradient", zero: "gradient is zero", not_finite: "not finite" }[cut.outcome] ?? "✂", tone: "bad" });
    if (isFailed) lines.push({ text: "fails", tone: "bad" });
    const label = `${step.op}${name ? ` computes ${name}: ${long(values[name])}` : ""}${cut ? `. ${cut.message}` : ""}`;
    nodes.push({ id, kind: step.folded ? "group" : "op", title: SIGNS[step.op] ?? step.op, lines, marks, folded: step.folded, label, step, name, cut });
    const takes = new Map();
    step.inputs.forEach((input, position) => {
      const from = typeof input === "string" ? maker.get(input) : undefined;
      if (from === undefined) {
        const constant = `c:${index}:${position}`;
        nodes.push({ id: constant, kind: "constant", title: "", lines: [{ text: typeof input === "string" ? input : constantText(input), tone: "soft" }] });
        edges.push({ from: constant, to: id });
      } else takes.set(input, from);
    });
    for (const [input, from] of takes) {
      const isDependent = dependent.has(input);
      edges.push({ from, to: id, lines: edgeLines(input, isDependent, values, gradients), kind: edgeKind(input, name, isDependent, gradients, target, cut) });
      if (isDependent) for (const output of step.outputs) dependent.add(output);
    }
    for (const output of step.outputs) maker.set(output, id);
  });
  return { nodes, edges };
}

/** The steps at which a gradient ends or breaks, each with its explanation. */
function cutsOf(why, steps) {
  const cuts = new Map();
  for (const facts of why) {
    if (facts.outcome === "gradient" || facts.outcome === "error") continue;
    const places = facts.path.filter((step) => step.cut);
    const index = steps.findIndex((step) =>
      facts.where ? step.where === facts.where && step.op === facts.op : step.op === facts.op || places.some((place) => place.op === step.op),
    );
    if (index >= 0 && facts.op) cuts.set(index, facts);
  }
  return cuts;
}

function edgeLines(name, isDependent, values, gradients) {
  const value = values[name];
  const lines = value ? [{ text: line(value), tone: oddity(value).match(/nan|inf/) ? "bad" : "value" }] : [];
  if (!gradients || !isDependent || !(name in gradients)) return lines;
  const gradient = gradients[name];
  const isBad = gradient === null || /nan|inf/.test(oddity(gradient));
  return [...lines, { text: `∂ ${line(gradient)}`, tone: isBad ? "bad" : "gradient" }];
}

function edgeKind(input, output, isDependent, gradients, target, cut) {
  if (!gradients || !isDependent || !(input in gradients)) return "plain";
  const passed = output === target || !(output in gradients) || gradients[output]; // a program knows only what it asks
  if (!gradients[input] || !passed || (cut && cut.outcome === "none")) return "none";
  return oddity(gradients[input]) === "zero" ? "zero" : "gradient";
}
