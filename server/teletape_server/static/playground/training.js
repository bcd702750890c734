// Gradient descent on the page's expression, by the server: forty steps a request, and the decision boundary after each.

import { tensor } from "./numbers.js";
import { batch, post } from "./server.js";

const STEPS = 40; // a request
const GRID = 32; // places along each side of the decision's picture
const RANGE = [-2, 2];
const FUNCTION = "train.loss"; // ids of the page's other requests have no such prefix
const STATE = "train.state";

const idOf = (name) => `train.${name}`;
const valueOf = ({ value, dtype }) => (dtype === "float32" ? value : tensor(value, dtype));
const ids = (commands) => [...new Set(commands.flatMap((command) => [command.id, ...(command.outputs ?? [])]).filter((id) => typeof id === "string"))];

/** The commands that create the variables and the function of a training. */
function preparation(parsed, inputs, plan, loss, { id = idOf, name = FUNCTION } = {}) {
  const steps = before(parsed.steps, loss).map(({ where, ...step }) => ({ do: "op", ...step }));
  return [
    ...plan.variables.map((variable) => ({ do: "variable", id: id(variable), value: inputs[variable].value })),
    { do: "function", id: name, inputs: parsed.inputs, steps, outputs: [loss] },
  ];
}

/** The body of a training request. */
function question(parsed, inputs, plan, steps, { id = idOf, state } = {}) {
  return {
    inputs: Object.fromEntries(parsed.inputs.map((name) => [name, plan.variables.includes(name) ? id(name) : valueOf(inputs[name])])),
    optimizer: { name: plan.optimizer ?? "sgd", learning_rate: plan.rate, ...(state ? { state } : {}) },
    steps,
    fetch: plan.variables.map(id),
  };
}

/**
 * Yields {done, losses} until all steps are done; `inputs` has the variables' values of then.
 *
 * @param {{inputs: string[], steps: object[]}} parsed
 * @param {Record<string, {value: unknown, dtype: string}>} inputs
 * @param {{variables: string[], rate: number, steps: number, optimizer?: string}} plan
 * @param {string} loss
 * @param {AbortSignal} signal
 */
export async function* train(parsed, inputs, plan, loss, signal) {
  const commands = preparation(parsed, inputs, plan, loss);
  await batch([...commands, ...plan.variables.map((name) => ({ do: "fetch", id: idOf(name) }))], [], { replace: true });
  const state = `${STATE}.${Date.now()}`; // an optimizer's state belongs to one training
  for (let done = 0; done < plan.steps && !signal.aborted; ) {
    const count = Math.min(STEPS, plan.steps - done);
    const answer = await post(`functions/${FUNCTION}/train`, question(parsed, inputs, plan, count, { state }), { signal });
    done += answer.steps;
    for (const name of plan.variables) inputs[name] = { ...inputs[name], value: answer.values[idOf(name)].data };
    yield { done, losses: answer.losses.data };
  }
}

/** The same training as requests from elsewhere: [{method, path, body}], below /v1/sessions. */
export function recipe(parsed, inputs, plan, loss) {
  const names = { id: (name) => name, name: "loss_function" };
  return [
    { method: "POST", path: "", body: { id: "playground", replace: true } },
    { method: "POST", path: "/playground/batch", body: { commands: preparation(parsed, inputs, plan, loss, names) } },
    { method: "POST", path: "/playground/functions/loss_function/train", body: question(parsed, inputs, plan, plan.steps, names) },
    { method: "DELETE", path: "/playground" },
  ];
}

/** The output at GRID × GRID places, with the inputs' values of now: {grid, size, range}. */
export async function decision(parsed, inputs, plan) {
  const at = (i) => RANGE[0] + ((RANGE[1] - RANGE[0]) * i) / (GRID - 1);
  const places = Array.from({ length: GRID * GRID }, (_, i) => [at(i % GRID), at(Math.floor(i / GRID))]);
  const needed = before(parsed.steps, plan.output);
  const used = new Set(needed.flatMap((step) => step.inputs).filter((input) => typeof input === "string"));
  const commands = parsed.inputs
    .filter((id) => used.has(id))
    .map((id) => ({ do: "constant", id, value: id === plan.points ? places : valueOf(inputs[id]) }));
  commands.push(...needed.map(({ where, ...step }) => ({ do: "op", ...step })));
  // A fetch as JSON shows all elements only up to 1000: the grid has 1024, so it is read in two halves.
  const half = (GRID * GRID) / 2;
  for (const [k, range] of [[0, half], [half, GRID * GRID]].entries())
    commands.push(
      { do: "op", op: "strided_slice", inputs: [plan.output], attrs: { index: [[...range, null]] }, outputs: [`half.${k}`] },
      { do: "fetch", id: `half.${k}` },
    );
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
