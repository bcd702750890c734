// Gradient descent on the page's expression: twenty steps a request, and the decision boundary after each.

import { tensor } from "./numbers.js";
import { batch } from "./server.js";

const STEPS = 20; // a request
const GRID = 32; // places along each side of the decision's picture
export const RANGE = [-2, 2];

const renamed = (steps, suffix) => {
  const mine = new Set(steps.flatMap((step) => step.outputs));
  const name = (input) => (mine.has(input) ? `${input}.${suffix}` : input);
  return steps.map(({ where, ...step }) => ({ do: "op", ...step, inputs: step.inputs.map(name), outputs: step.outputs.map(name) }));
};

const ids = (commands) => [...new Set(commands.flatMap((command) => [command.id, ...(command.outputs ?? [])]).filter((id) => id && typeof id === "string"))];

/**
 * Yields the values of the variables, and the losses since the last time, until all steps are done.
 *
 * @param {{inputs: string[], steps: object[]}} parsed
 * @param {Record<string, {value: unknown, dtype: string}>} inputs - changed in place.
 * @param {{variables: string[], rate: number, steps: number}} plan
 * @param {string} loss
 * @param {AbortSignal} signal
 */
export async function* train(parsed, inputs, plan, loss, signal) {
  for (let done = 0; done < plan.steps && !signal.aborted; done += STEPS) {
    const count = Math.min(STEPS, plan.steps - done);
    const commands = parsed.inputs.map((id) => ({ do: "variable", id, value: tensor(inputs[id].value, inputs[id].dtype) }));
    for (let i = 0; i < count; i += 1) {
      const gradients = plan.variables.map((name) => `d.${name}.${i}`);
      commands.push({ do: "tape.open", id: `tape.${i}` }, ...renamed(parsed.steps, i));
      commands.push({ do: "gradient", tape: `tape.${i}`, targets: [`${loss}.${i}`], sources: plan.variables, outputs: gradients });
      plan.variables.forEach((variable, j) => {
        commands.push({ do: "op", op: "mul", inputs: [gradients[j], plan.rate], outputs: [`step.${variable}.${i}`] });
        commands.push({ do: "assign", variable, value: `step.${variable}.${i}`, mode: "sub" });
      });
      commands.push({ do: "fetch", id: `${loss}.${i}` });
    }
    commands.push(...plan.variables.map((id) => ({ do: "fetch", id })));
    const answer = await batch(commands, ids(commands), { signal });
    if (answer.failure) throw new Error(answer.failure.message);
    const fetched = answer.results.filter((result) => result.value);
    const losses = fetched.slice(0, count).map((result) => result.value.data);
    for (const result of fetched.slice(count)) inputs[result.id] = { ...inputs[result.id], value: result.value.data };
    yield { done: done + count, losses };
  }
}

/** The output at GRID × GRID places, with the inputs' values of now: {grid, size, range}. */
export async function decision(parsed, inputs, plan) {
  const at = (i) => RANGE[0] + ((RANGE[1] - RANGE[0]) * i) / (GRID - 1);
  const places = Array.from({ length: GRID * GRID }, (_, i) => [at(i % GRID), at(Math.floor(i / GRID))]);
  const needed = before(parsed.steps, plan.output);
  const used = new Set(needed.flatMap((step) => step.inputs).filter((input) => typeof input === "string"));
  const commands = parsed.inputs
    .filter((id) => used.has(id))
    .map((id) => ({ do: "constant", id, value: id === plan.points ? tensor(places) : tensor(inputs[id].value, inputs[id].dtype) }));
  commands.push(...needed.map(({ where, ...step }) => ({ do: "op", ...step })));
  // A fetch as JSON shows all elements only up to 1000: the grid has 1024, so it is read in two halves.
  const half = (GRID * GRID) / 2;
  for (const [k, index] of [[0, half], [half, GRID * GRID]].entries())
    commands.push({ do: "op", op: "strided_slice", inputs: [plan.output], attrs: { index: [[...index, null]] }, outputs: [`half.${k}`] }, { do: "fetch", id: `half.${k}` });
  const answer = await batch(commands, ids(commands));
  if (answer.failure) throw new Error(answer.failure.message);
  return { grid: answer.results.flatMap((result) => result.value.data.flat()), size: GRID, range: RANGE };
}

/** The steps that a result needs. */
function before(steps, output) {
  const needed = new Set([output]);
  const kept = [];
  for (const step of [...steps].reverse()) {
    if (!step.outputs.some((name) => needed.has(name))) continue;
    kept.unshift(step);
    for (const input of step.inputs) if (typeof input === "string") needed.add(input);
  }
  return kept;
}
