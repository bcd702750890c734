// Programs: lists of commands as POST /v1/run takes them; made from a parsed expression, or written by hand. This module
// reads them (which ids they make, which steps they have, what they ask) and runs them in the page's session.

import { batch } from "./server.js";
import { sizeOf, tensor } from "./numbers.js";

const QUESTIONS = new Set(["gradient", "jacobian", "hessian", "hvp", "jvp"]);
const LOOPS = new Set(["while", "scan"]);
const COMPUTE = new Set(["op", "call", "while", "scan", "cond"]);

/** The ids that a command makes. */
function made(command) {
  const ids = ["id", "output"].flatMap((field) => (command.do !== "fetch" && command.do !== "backward.cotangents" ? [command[field]] : []));
  return [...ids, ...(command.outputs ?? [])].filter((id) => typeof id === "string");
}

export const hasLoops = (program) => (program.commands ?? []).some((command) => LOOPS.has(command.do));

/** A name for a derivative that the program does not use: dx, or d.x. */
function derivativeName(prefix, name, taken) {
  const nice = `${prefix}${name}`;
  return taken.has(nice) ? `${prefix}.${name}` : nice;
}

/**
 * The program that computes a parsed expression and answers a question about it.
 *
 * @param {{inputs: string[], steps: object[]}} parsed
 * @param {Record<string, {value: number|number[], dtype: string}>} inputs
 * @param {{kind: string, target: string, sources: string[], vectors: Record<string, unknown>}} question
 */
export function programOf(parsed, inputs, question) {
  const { kind, target, sources, vectors } = question;
  const taken = new Set([...parsed.inputs, ...parsed.steps.flatMap((step) => step.outputs)]);
  const commands = parsed.inputs.map((id) => ({ do: "variable", id, value: inputs[id].dtype === "float32" ? inputs[id].value : tensor(inputs[id].value, inputs[id].dtype) }));
  commands.push({ do: "tape.open", id: "tape" });
  for (const step of parsed.steps) commands.push({ do: "op", ...step });
  const fetch = [target];
  if (sources.length) {
    const ask = { do: kind, tape: "tape", targets: [target], sources };
    if (kind === "hvp") ask.vectors = sources.map((name) => vectors[name]);
    ask.outputs =
      kind === "hessian"
        ? sources.flatMap((a) => sources.map((b) => derivativeName("h", `${a}.${b}`, taken)))
        : sources.map((name) => derivativeName({ jacobian: "j", hvp: "hv" }[kind] ?? "d", name, taken));
    commands.push(ask);
    fetch.push(...ask.outputs);
  }
  return { commands, fetch };
}

/** The steps of a program, for the picture: {op, inputs, outputs, attrs, where, folded}; and what it asks. */
export function read(program) {
  const steps = [];
  const inputs = new Map(); // id → {value, dtype}, of variables and constants with numbers
  const questions = [];
  const functions = new Map();
  for (const command of program.commands ?? []) {
    if ((command.do === "variable" || command.do === "constant") && typeof command.id === "string") {
      inputs.set(command.id, { command, value: command.value?.data ?? command.value });
    } else if (command.do === "function") functions.set(command.id, command);
    else if (COMPUTE.has(command.do)) {
      const body = functions.get(command.function ?? command.body);
      const names = { call: command.function, while: `while ${command.cond}: ${command.body}`, scan: `scan ${command.body}`, cond: "cond" };
      steps.push({
        op: names[command.do] ?? command.op,
        inputs: command.inputs ?? [],
        outputs: command.outputs ?? [],
        attrs: command.attrs ?? {},
        where: command.where,
        folded: command.do === "op" ? 0 : (body?.steps.length ?? 1),
      });
    } else if (QUESTIONS.has(command.do)) {
      questions.push(command);
      const isUsed = (program.commands ?? []).some((other) => COMPUTE.has(other.do) && other.inputs?.some((id) => command.outputs?.includes(id)));
      if (isUsed)
        steps.push({ op: command.do, inputs: [...(command.targets ?? []), ...(command.sources ?? [])], outputs: command.outputs ?? [], attrs: {}, folded: 1 });
    }
  }
  return { steps, inputs, questions };
}

/**
 * Runs a program, and reads every value that it makes, also those before a failure.
 *
 * @param {object} program
 * @param {{question?: object[], options?: object}} [more] - further commands, of which the tape has to answer more than
 *   one question; and what `batch` takes.
 * @returns {Promise<{values: object, why: object[], failure: object|null, seconds: number, asked: string[]}>} values by
 *   id, null for a derivative that does not exist; explanations, each with its source; ids of derivatives.
 */
export async function run(program, { question, options } = {}) {
  const commands = [];
  const asked = []; // ids of derivatives that may be none
  const sent = program.commands ?? [];
  const opened = new Set(sent.filter((command) => command.do === "tape.open").map((command) => command.id));
  for (const command of sent) {
    if (QUESTIONS.has(command.do)) {
      if (command.do === "gradient" && opened.has(command.tape) && !command.output_gradients)
        commands.push({ do: "explain", tape: command.tape, targets: command.targets, sources: command.sources });
      commands.push(command);
      asked.push(...(command.outputs ?? []));
      for (const id of command.outputs ?? []) if (id) commands.push({ do: "fetch", id, optional: true });
    } else {
      commands.push(question && command.do === "tape.open" ? { ...command, persistent: true } : command);
      if (COMPUTE.has(command.do)) for (const id of command.outputs ?? []) if (id) commands.push({ do: "fetch", id});
    }
  }
  if (question) commands.push(...question);
  const temporaries = [...new Set(commands.flatMap(made))];
  const answer = await batch(commands, temporaries, options);
  const values = {};
  const why = [];
  for (const result of answer.results) {
    const command = commands[result.command];
    if (command.do === "fetch") values[command.id] = result.value;
    if (command.do === "explain")
      result.facts.explanations.forEach((facts, index) => why.push({ ...facts, source: command.sources[index], targets: command.targets }));
    if (result.kinds)
      result.kinds.forEach((kind, index) => {
        const id = command.outputs?.[index];
        if (kind === "none" && id) values[id] = null;
      });
  }
  return { values, why, failure: answer.failure && { ...answer.failure, at: commands[answer.failure.command] }, seconds: answer.compute_seconds, asked };
}

/** Commands that compute the gradient of the target by every value of a parsed expression: {commands, gradients}. */
export function everyGradient(parsed, target, inputs) {
  const names = [...inputs, ...parsed.steps.flatMap((step) => step.outputs)];
  const outputs = names.map((_, index) => `every.${index}`);
  return {
    commands: [
      { do: "gradient", tape: "tape", targets: [target], sources: names, outputs },
      ...outputs.map((id) => ({ do: "fetch", id, optional: true })),
    ],
    gradients: (values) => Object.fromEntries(names.map((name, index) => [name, values[outputs[index]] ?? null])),
  };
}

/**
 * Values and gradients of a target over one element of an input.
 *
 * The function runs once for each point by `scan`; the gradient of all results' sum has that of each point.
 *
 * @returns {Promise<{values: number[][], gradients: (number|null)[]}>} for each point: the target's elements (at most
 *   six), and the derivative of their sum.
 */
export async function sweep(parsed, inputs, target, { name, element, points }) {
  const { value, dtype } = inputs[name];
  const elements = [value].flat(Infinity);
  const stacked = points.flatMap((point) => elements.map((other, index) => (index === element ? point : other)));
  const shape = [points.length, ...shapeOfValue(value)];
  const others = parsed.inputs.filter((other) => other !== name);
  const steps = parsed.steps.map(({ where, ...step }) => ({ do: "op", ...step }));
  const commands = [
    { do: "function", id: "sweep", inputs: [name, ...others], steps, outputs: [target] },
    { do: "variable", id: "points", value: { dtype, shape, data: stacked } },
    { do: "tape.open", id: "sweep.tape" },
    {
      do: "scan",
      body: "sweep",
      inputs: ["points", ...others.map((other) => tensor(inputs[other].value, inputs[other].dtype))],
      captured: others.length,
      outputs: ["results"],
    },
    { do: "gradient", tape: "sweep.tape", targets: ["results"], sources: ["points"], outputs: ["slopes"] },
    { do: "fetch", id: "results" },
    { do: "fetch", id: "slopes", optional: true },
  ];
  const answer = await batch(commands, commands.flatMap(made));
  if (answer.failure) throw new Error(answer.failure.message);
  const byId = Object.fromEntries(answer.results.filter((result) => result.id).map((result) => [result.id, result.value]));
  const width = sizeOf(byId.results.shape.slice(1));
  const results = byId.results.data.flat(Infinity).map(Number);
  const slopes = byId.slopes?.data.flat(Infinity).map(Number);
  return {
    values: points.map((_, i) => results.slice(i * width, i * width + Math.min(width, 6))),
    gradients: points.map((_, i) => (slopes ? slopes[i * elements.length + element] : null)),
  };
}

function shapeOfValue(value) {
  return Array.isArray(value) ? [value.length, ...shapeOfValue(value[0])] : [];
}
