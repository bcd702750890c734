// The page: its state, what is sent when it changes, and what is shown. Long because it joins all parts of the page.

import { apiKey, ProblemError, setApiKey } from "../shared/api.js";
import { GraphView } from "../shared/graph.js";
import { body, LANGUAGES } from "./copies.js";
import { Editor } from "./editor.js";
import { element, ends, Inputs } from "./inputs.js";
import { flat, line, long, oddity, shapeOf, short, sizeOf, typed } from "./numbers.js";
import { SIGNS, pictureOf } from "./picture.js";
import { drawBoundary, drawHeatMap, drawLines, drawSeries } from "./plot.js";
import { PRESETS, START } from "./presets.js";
import { everyGradient, hasLoops, programOf, read, run, sweep } from "./program.js";
import { showPublishing, startPublishing } from "./publishing.js";
import { cancel, catalogue, end, parse, prepare } from "./server.js";
import { decision, recipe, train } from "./training.js";

const KINDS = { gradient: "Gradient", jacobian: "Jacobian", hessian: "Hessian", hvp: "Hessian × vector" };
const SHORT_NAMES = ["sum", "mean", "max", "min", "prod", "std", "var", "norm", "clip", "any", "all"];
const POINTS = 121; // of a plot
const MOST_CELLS = 10_000; // of a heat map
const PAUSE = 120; // milliseconds without a key before a text is parsed

const $ = (id) => document.getElementById(id);
const copyOf = (value) => JSON.parse(JSON.stringify(value));

/**
 * The state that a permalink holds.
 * mode, text: the editor's. values, ranges: of inputs. kind, target, vectors: the question. plot: an input or an element
 * of it. train: a plan of training.
 */
let state = copyOf(START);
let preset = null; // its name in the address; "" is the first state, null is none
let parsed = null; // of the expression
let parsedText = null;
let inputs = {}; // name → {value, dtype}
let defaults = {}; // values that the text gives
let result = null;
let shownProgram = null; // what the copies show
let losses = [];
let training = null; // the AbortController of the training that runs
let trained = null; // the training of the shown state, as requests
let untrained = null; // the values before it

// ------------------------------------------------------------------------------------------------------------ permalinks
const encode = (value) => btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(value)))).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
const decode = (text) => JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0))));

function readAddress() {
  const hash = location.hash.slice(1);
  try {
    if (hash.startsWith("s=")) return [null, { ...START, values: {}, ...decode(hash.slice(2)) }];
  } catch {
    $("note").textContent = "The address holds no readable state: this is the first example.";
  }
  return Object.hasOwn(PRESETS, hash) ? [hash, copyOf(PRESETS[hash].state)] : ["", copyOf(START)];
}

function currentState() {
  const values = Object.fromEntries(
    Object.entries(inputs).filter(([name, { value }]) => JSON.stringify(value) !== JSON.stringify(defaults[name])).map(([name, { value }]) => [name, value]),
  );
  return { ...state, values };
}

let ownHash = null;
function writeAddress() {
  const now = JSON.stringify(currentState());
  if (preset !== null) presetState ??= now;
  const isPreset = preset !== null && now === presetState;
  ownHash = isPreset ? preset : `s=${encode(currentState())}`;
  history.replaceState(null, "", ownHash ? `#${ownHash}` : location.pathname);
  for (const link of $("gallery").children) link.toggleAttribute("aria-current", isPreset && link.hash.slice(1) === preset);
}

let presetState = null;
function load(name, next) {
  generation += 1;
  training?.abort();
  if (!$("cancel").classList.contains("hidden")) cancel().catch(() => {}); // a loop whose result is not shown any more
  preset = name;
  presetState = null;
  state = { values: {}, ranges: {}, kind: "gradient", vectors: {}, ...next };
  [parsed, parsedText, inputs, defaults, result, losses, trained, untrained] = [null, null, {}, {}, null, [], null, null];
  editor.set(state.text, state.mode);
  graph.select(null);
  $("note").textContent = "";
  showFault(null);
  showState();
  refresh();
}

// --------------------------------------------------------------------------------------------------------------- running
let typing = null; // the timer since the last key
let running = false;
let again = false;
let wantsLoops = false; // whether the next turn also runs a program with loops
let ranProgram = null; // the program with loops that ran last
let generation = 0; // of the state: what was asked for an earlier one is dropped

/** Brings everything up to date; one request at a time, and the newest state last. */
async function refresh({ loops = false } = {}) {
  wantsLoops ||= loops;
  clearTimeout(typing);
  if (running) {
    again = true;
    return;
  }
  running = true;
  document.body.setAttribute("aria-busy", "true");
  try {
    do {
      again = false;
      const runsLoops = wantsLoops;
      wantsLoops = false;
      await (state.mode === "expression" ? refreshExpression() : refreshProgram(runsLoops));
    } while (again);
  } catch (error) {
    showProblem(error);
  } finally {
    running = false;
    document.body.setAttribute("aria-busy", "false");
    if (again) refresh();
  }
}

async function refreshExpression() {
  const [text, current] = [state.text, generation];
  if (text !== parsedText) {
    const next = await parse(text);
    if (text !== state.text || current !== generation) return;
    [parsed, parsedText] = [next, text];
    takeInputs();
  }
  editor.mark([]);
  const named = namesIn(parsed);
  const target = named.includes(state.target) ? state.target : parsed.outputs.at(-1); // the last line's, unless chosen
  const sources = parsed.inputs.filter((name) => inputs[name].dtype === "float32" && isUsed(name) && (!state.train?.points || state.train.variables.includes(name)));
  for (const name of sources) {
    const shape = shapeOf(inputs[name].value);
    if (String(shapeOf(state.vectors[name] ?? "")) !== String(shape)) state.vectors[name] = fill(shape, 1);
  }
  const question = { kind: state.kind, target, sources, vectors: state.vectors };
  const program = programOf(parsed, inputs, question);
  const every = everyGradient(parsed, target, sources);
  const answer = await run(program, { question: sources.length && state.kind !== "gradient" ? withExplain(every, target, sources) : every.commands });
  if (current !== generation) return;
  result = {
    ...answer, steps: parsed.steps, inputs: parsed.inputs, target, sources, named: new Set(named), program,
    gradients: sources.length ? every.gradients(answer.values) : null,
    values: { ...answer.values, ...Object.fromEntries(parsed.inputs.map((name) => [name, { dtype: inputs[name].dtype, shape: shapeOf(inputs[name].value), data: inputs[name].value }])) },
    derivatives: sources.length ? derivativesOf(program, sources) : [],
  };
  shownProgram = program;
  showFault(null);
  showEverything();
  writeAddress();
  await showPlots();
}

/** Of a Jacobian or a Hessian the zeros and Nones are explained by the gradient of the same target. */
function withExplain(every, target, sources) {
  return [{ do: "explain", tape: "tape", targets: [target], sources }, ...every.commands];
}

function isUsed(name) {
  return parsed.steps.some((step) => step.inputs.includes(name)) || parsed.outputs.includes(name);
}

function namesIn(function_) {
  const words = new Set(state.text.replace(/#.*/g, "").match(/[A-Za-z]\w*/g) ?? []);
  return [...new Set(function_.steps.flatMap((step) => step.outputs).filter((name) => words.has(name) || name === "result" || function_.outputs.includes(name)))];
}

function takeInputs() {
  const next = {};
  for (const name of parsed.inputs) {
    const given = parsed.values[name];
    const value = given ? unflat(given) : undefined;
    const isNew = JSON.stringify(value) !== JSON.stringify(defaults[name]);
    const held = state.values[name] ?? (isNew && value !== undefined ? undefined : inputs[name]?.value);
    next[name] = { value: held ?? value ?? 1, dtype: given?.dtype === "int32" ? "int32" : "float32" };
    delete state.values[name];
  }
  defaults = Object.fromEntries(parsed.inputs.map((name) => [name, parsed.values[name] ? unflat(parsed.values[name]) : undefined]));
  inputs = next;
}

function unflat({ shape, data }) {
  const numbers = [data].flat(Infinity).map(Number);
  const build = (lengths, at) => (lengths.length ? Array.from({ length: lengths[0] }, (_, i) => build(lengths.slice(1), at * lengths[0] + i)) : numbers[at]);
  return build(shape, 0);
}

const fill = (shape, number) => (shape.length ? Array.from({ length: shape[0] }, () => fill(shape.slice(1), number)) : number);

async function refreshProgram(loops) {
  let program;
  try {
    program = JSON.parse(state.text);
    if (!Array.isArray(program.commands)) throw new Error('a program is an object with a list "commands"');
  } catch (error) {
    const at = Number(/position (\d+)/.exec(error.message)?.[1] ?? 0);
    editor.mark([{ from: at, to: at + 1, message: error.message }]);
    showFault(error.message);
    return;
  }
  editor.mark([]);
  const facts = read(program);
  const values = state.values;
  inputs = {};
  defaults = {};
  for (const [name, { command, value }] of facts.inputs) {
    if (shapeOf(value) === null) continue;
    defaults[name] = value;
    inputs[name] = { value: values[name] ?? value, dtype: command.value?.dtype ?? "float32" };
  }
  program = {
    ...program,
    commands: program.commands.map((command) =>
      Object.hasOwn(inputs, command.id) && facts.inputs.get(command.id)?.command === command && JSON.stringify(inputs[command.id].value) !== JSON.stringify(defaults[command.id])
        ? { ...command, value: inputs[command.id].dtype === "float32" ? inputs[command.id].value : { dtype: inputs[command.id].dtype, data: inputs[command.id].value } }
        : command,
    ),
  };
  shownProgram = program;
  const isLong = hasLoops(program);
  $("run-bar").classList.toggle("hidden", !isLong);
  const question = facts.questions.at(-1);
  const base = { steps: facts.steps, inputs: [...facts.inputs.keys()], target: question?.targets?.[0] ?? program.fetch?.[0], named: new Set(facts.steps.flatMap((step) => step.outputs)), program, sources: question?.sources ?? [] };
  const given = Object.fromEntries(Object.entries(inputs).map(([name, { value, dtype }]) => [name, { dtype, shape: shapeOf(value), data: value }]));
  if (isLong && !loops) {
    if (result && ranProgram === JSON.stringify(program)) return;
    result = { ...base, values: given, why: [], failure: null, gradients: null, derivatives: [], seconds: null };
    showEverything();
    writeAddress();
    return;
  }
  if (isLong) showRunning(true);
  let answer;
  const current = generation;
  try {
    answer = await run(program, { options: isLong ? { onProgress: showProgress } : {} });
  } finally {
    if (isLong) showRunning(false);
  }
  if (current !== generation) return;
  ranProgram = isLong ? JSON.stringify(program) : null;
  const gradients = {};
  for (const ask of facts.questions) if (ask.do === "gradient") ask.sources.forEach((source, i) => (gradients[source] = answer.values[ask.outputs?.[i]] ?? null));
  result = {
    ...base, ...answer, values: { ...given, ...answer.values }, gradients: facts.questions.some((ask) => ask.do === "gradient") ? gradients : null,
    derivatives: facts.questions.flatMap((ask) => (ask.outputs ?? []).map((id, i) => ({ id, kind: ask.do, target: ask.targets?.[0], source: ask.sources?.[i] ?? "" }))).filter(({ id }) => id),
  };
  showFault(null);
  showEverything();
  writeAddress();
}

function derivativesOf(program, sources) {
  const ask = program.commands.at(-1);
  if (ask.do !== "hessian") return ask.outputs.map((id, i) => ({ id, kind: ask.do, target: ask.targets[0], source: sources[i] }));
  return ask.outputs.map((id, i) => ({ id, kind: "hessian", target: ask.targets[0], source: sources[Math.floor(i / sources.length)], by: sources[i % sources.length] }));
}

// --------------------------------------------------------------------------------------------------------------- showing
function showState() {
  for (const mode of ["expression", "program"]) $(`tab-${mode}`).setAttribute("aria-selected", String(state.mode === mode));
  $("question").classList.toggle("hidden", state.mode !== "expression");
  $("training").classList.toggle("hidden", state.mode !== "expression");
  if (state.train) $("training").open = true;
  $("boundary-panel").classList.toggle("hidden", !state.train?.points);
  $("losses-panel").classList.add("hidden");
  if (state.mode === "expression") $("run-bar").classList.add("hidden");
  for (const id of ["matrix-panel", "plot-panel"]) $(id).classList.add("hidden");
  $("about").textContent = preset ? PRESETS[preset].about : "Type a formula. The server computes it, and its gradient.";
  for (const [kind, button] of Object.entries(kindButtons)) {
    button.setAttribute("aria-checked", String(kind === state.kind));
    button.tabIndex = kind === state.kind ? 0 : -1;
  }
  $("optimizer").value = state.train?.optimizer ?? "sgd";
  $("rate").value = state.train?.rate ?? 0.1;
  $("steps").value = state.train?.steps ?? 100;
  $("training-text").textContent = "";
}

function showEverything() {
  document.body.classList.remove("stale");
  inputView.set(Object.entries(inputs).map(([name, { value, dtype }]) => ({ name, value, dtype, range: state.ranges?.[name] })));
  if (state.mode === "expression") showQuestion();
  showResults();
  showExplanations();
  graph.set(pictureOf({ ...result, why: isJacobian() ? result.why.filter((facts) => facts.outcome !== "zero") : result.why }));
  showDetails(graph.selected);
  showCode();
  showPublishing(state.mode === "expression", inputs, defaults);
}

const isJacobian = () => state.mode === "expression" && state.kind === "jacobian";

function showQuestion() {
  const names = [...result.named];
  const select = $("target");
  if ([...select.options].map((option) => option.value).join() !== names.join()) select.replaceChildren(...names.map((name) => element("option", { value: name }, name)));
  select.value = result.target;
  $("sources").textContent = result.sources.length ? `by ${result.sources.join(", ")}` : "";
  showVariables();
  const vectors = state.kind === "hvp" ? result.sources.map((name) => ({ name: `v(${name})`, value: state.vectors[name], dtype: "float32" })) : [];
  $("vectors").classList.toggle("hidden", !vectors.length);
  vectorView.set(vectors);
}

/** Boxes for the inputs that a training changes; all of them unless the state says which. */
function showVariables() {
  const names = parsed.inputs.filter((name) => inputs[name].dtype === "float32" && isUsed(name));
  const box = $("variables");
  if (box.dataset.names === names.join()) return;
  box.dataset.names = names.join();
  box.replaceChildren(
    ...names.map((name) => {
      const choice = element("input", { type: "checkbox", value: name });
      choice.checked = state.train ? state.train.variables.includes(name) : true;
      return element("label", {}, choice, name);
    }),
  );
}

/** The plan that the panel shows. */
function planOf() {
  const variables = [...$("variables").querySelectorAll(":checked")].map((choice) => choice.value);
  const number = (id, other) => (typed($(id).value) > 0 ? typed($(id).value) : other);
  return { ...state.train, variables, optimizer: $("optimizer").value, rate: number("rate", 0.1), steps: Math.round(number("steps", 100)) };
}

function derivativeTitle({ kind, target, source, by }) {
  if (kind === "hessian") return `∂²${target}/∂${source}∂${by ?? source}`;
  if (kind === "hvp") return `H·v, ${source}`;
  return kind === "jacobian" ? `J: ∂${target}/∂${source}` : `∂${target}/∂${source}`;
}

function showResults() {
  const cards = [];
  const card = (title, tensor, kind) => {
    const odd = tensor ? oddity(tensor) : "none";
    const isBad = ["nan", "inf", "none"].includes(odd);
    const text = tensor === null ? "None" : long(tensor).length <= 60 ? long(tensor) : line(tensor);
    return element("div", { class: `card ${kind} ${isBad ? "bad" : ""}`, "data-result": title }, element("span", { class: "card-name" }, title), element("output", {}, text));
  };
  const { values, target, derivatives, program } = result;
  if (target && values[target] !== undefined) cards.push(card(target, values[target], "value"));
  for (const facts of derivatives) if (values[facts.id] !== undefined) cards.push(card(derivativeTitle(facts), values[facts.id], "gradient"));
  if (state.mode === "program") for (const id of program.fetch ?? []) if (values[id] !== undefined && id !== target && !derivatives.some((facts) => facts.id === id)) cards.push(card(id, values[id], "value"));
  $("results").replaceChildren(...cards);
  $("note").textContent = result.seconds == null ? "" : `Computed in ${(result.seconds * 1000).toFixed(1)} ms on the server.`;
}

function showExplanations() {
  const boxes = [];
  const { failure, why, steps, values } = result;
  if (failure) boxes.push(box("none", `${SIGNS[failure.op] ?? failure.op ?? failure.at?.do ?? "The program"} fails`, failure.message.replace(/^op '\w+': /, ""), "", failure.code, failure.where));
  const first = steps.find((step) => step.outputs.some((name) => values[name] && /nan|inf/.test(oddity(values[name]))));
  if (first) {
    const name = first.outputs[0];
    const from = first.inputs.filter((input) => typeof input === "string" && values[input]).map((input) => `${input} = ${line(values[input])}`);
    const isNaN_ = oddity(values[name]) === "nan";
    boxes.push(box("none", `${first.op} computes ${isNaN_ ? "NaN" : "an infinity"}`, from.length ? `of ${from.join(", ")}` : "", `keep the argument in the domain of ${first.op}, for example with where or maximum before it`, isNaN_ ? "nan" : "infinity", first.where));
  }
  for (const group of grouped(why)) {
    const [facts] = group;
    const names = group.map((other) => other.source).join(", ");
    const title = { none: `The gradient by ${names} is None`, zero: `The gradient by ${names} is zero`, not_finite: `The gradient by ${names} is not finite` }[facts.outcome];
    // Of a vector's Jacobian the sum was not asked for: that of a softmax is always zero.
    if (facts.outcome === "zero" && isJacobian()) continue;
    if (title) boxes.push(box(facts.outcome, title, facts.message, facts.advice, facts.code, facts.where, facts.notes));
  }
  $("explanations").replaceChildren(...boxes);
}

/** Explanations with the same text, for several sources. */
function grouped(why) {
  const groups = new Map();
  for (const facts of why) {
    const key = `${facts.outcome}|${facts.message}|${facts.where}`;
    groups.set(key, [...(groups.get(key) ?? []), facts]);
  }
  return groups.values();
}

function box(outcome, title, message, advice, code, where, notes = []) {
  const parts = [element("h3", {}, title), element("p", {}, message)];
  if (advice) parts.push(element("p", { class: "advice" }, element("b", {}, "What to do: "), advice));
  for (const note of notes ?? []) parts.push(element("p", { class: "soft" }, note));
  const foot = element("p", { class: "soft foot" }, element("code", {}, code));
  const range = rangeOf(where);
  if (range) {
    const button = element("button", { type: "button", class: "plain" }, where);
    button.addEventListener("click", () => editor.select(...range));
    foot.append(" at ", button);
  }
  return element("article", { class: `why ${outcome}`, "data-code": code }, ...parts, foot);
}

/** The offsets of a place such as "line 2, columns 5-10". */
function rangeOf(where) {
  const match = /^line (\d+), columns? (\d+)(?:-(\d+))?$/.exec(where ?? "");
  if (!match || state.mode !== "expression") return null;
  const start = state.text.split("\n").slice(0, match[1] - 1).join("\n").length + (match[1] > 1 ? 1 : 0);
  return [start + Number(match[2]) - 1, start + Number(match[3] ?? match[2])];
}

function showDetails(id) {
  const panel = $("details");
  const node = id === null ? null : graph.nodes?.find((other) => other.id === id);
  panel.classList.toggle("hidden", !node);
  if (!node) return;
  const { name, step, cut } = node;
  const rows = [[name ?? node.title ?? "", step ? step.op : node.kind]];
  if (name && result.values[name]) rows.push(["value", `${result.values[name].dtype}[${result.values[name].shape}] ${long(result.values[name])}`]);
  if (result.gradients && name in result.gradients) rows.push(["gradient", result.gradients[name] ? long(result.gradients[name]) : "None"]);
  if (step && Object.keys(step.attrs ?? {}).length) rows.push(["attributes", JSON.stringify(step.attrs)]);
  if (step?.where) rows.push(["where", step.where]);
  if (cut) rows.push(["why", cut.message]);
  panel.replaceChildren(...rows.flatMap(([title, text]) => [element("b", {}, title), element("span", {}, text)]));
  const range = rangeOf(step?.where);
  if (range) editor.select(...range);
}

let language = "curl";
function showCode() {
  for (const tab of $("languages").children) tab.setAttribute("aria-selected", String(tab.dataset.language === language));
  const [, ofProgram, ofRequests] = LANGUAGES[language];
  $("code").firstElementChild.textContent = trained ? ofRequests(trained) : shownProgram ? ofProgram(shownProgram) : "";
}

function showFault(message) {
  $("fault").classList.toggle("hidden", !message);
  $("fault").textContent = message ?? "";
  $("key-needed").classList.add("hidden");
  document.body.classList.toggle("stale", Boolean(message));
}

function showProblem(error) {
  if (!(error instanceof ProblemError) && error.name !== "AbortError") console.error(error);
  if (error.code === "invalid_expression") editor.mark([{ from: error.details.start, to: Math.max(error.details.end, error.details.start), message: error.message.replace(/^[^:]*: /, "") }]);
  showFault(error.name === "AbortError" ? null : error.message);
  if (error.code === "unauthenticated") {
    $("fault").classList.add("hidden");
    $("key-needed").classList.remove("hidden");
    $("key-problem").textContent = apiKey() ? "The key that you gave is not known here." : "";
    $("key").focus();
  }
}

// ----------------------------------------------------------------------------------------------------------------- plots
/** Numbers that a plot can be over: scalars, and elements of small vectors: [{label, name, element}]. */
function plottable() {
  return result.sources.flatMap((name) => {
    const shape = shapeOf(inputs[name].value);
    if (!shape.length) return [{ label: name, name, element: 0 }];
    const count = shape.length === 1 ? Math.min(shape[0], 8) : 0;
    return Array.from({ length: count }, (_, element_) => ({ label: `${name}[${element_}]`, name, element: element_ }));
  });
}

async function showPlots() {
  const choices = state.train?.points ? [] : plottable();
  const choice = choices.find(({ label }) => label === state.plot) ?? choices[0];
  $("plot-panel").classList.toggle("hidden", !choice || Boolean(result.failure)); // before a matrix takes the width
  showMatrices();
  if (state.train?.points) await showDecision();
  if (!choice || result.failure) return;
  const select = $("plot-choice");
  if ([...select.options].map((option) => option.value).join() !== choices.map(({ label }) => label).join())
    select.replaceChildren(...choices.map(({ label }) => element("option", { value: label }, label)));
  select.value = choice.label;
  const at = [inputs[choice.name].value].flat(Infinity)[choice.element];
  const [low, high] = ends(at, state.ranges?.[choice.name]);
  const points = Array.from({ length: POINTS }, (_, i) => low + ((high - low) * i) / (POINTS - 1));
  const [{ target, values }, current] = [result, generation];
  try {
    const curve = await sweep(parsed, inputs, target, { ...choice, points });
    if (current !== generation) return;
    drawLines($("plot"), { ...curve, points, at, name: choice.label, target }, (value) => {
      const elements = [inputs[choice.name].value].flat(Infinity);
      elements[choice.element] = Number(value.toPrecision(4));
      setInput(choice.name, shapeOf(inputs[choice.name].value).length ? elements : elements[0]);
    });
    const width = sizeOf(values[target]?.shape ?? []);
    $("plot-text").textContent = curve.gradients.every((gradient) => gradient === null) ? "There is no gradient anywhere." : width > 1 ? `The gradient is that of the sum of ${target}.` : "";
  } catch (error) {
    if (current !== generation) return;
    if (error.code === "no_answer" || error.code === "unauthenticated") throw error;
    $("plot").replaceChildren();
    $("plot-text").textContent = `No plot: ${error.message}`;
  }
}

function showMatrices() {
  const { values, derivatives, target } = result;
  const matrices = derivatives.filter(({ id, kind }) => values[id] && (kind === "jacobian" || kind === "hessian") && sizeOf(values[id].shape) > 1 && sizeOf(values[id].shape) <= MOST_CELLS && flat(values[id]).length === sizeOf(values[id].shape));
  $("matrix-panel").classList.toggle("hidden", !matrices.length);
  if (!matrices.length) return;
  const titles = matrices.map(derivativeTitle);
  const select = $("matrix-choice");
  if ([...select.options].map((option) => option.value).join("|") !== titles.join("|")) select.replaceChildren(...titles.map((title) => element("option", { value: title }, title)));
  select.classList.toggle("hidden", titles.length < 2);
  const index = Math.max(titles.indexOf(select.value), 0);
  const facts = matrices[index];
  $("matrix-title").textContent = titles[index];
  const columnsOf = facts.kind === "hessian" ? facts.by : facts.source;
  const columns = sizeOf(shapeOf(inputs[columnsOf].value));
  const numbers = flat(values[facts.id]);
  drawHeatMap($("matrix"), { numbers, rows: numbers.length / columns, columns, label: titles[index], rowName: facts.kind === "hessian" ? facts.source : target, columnName: columnsOf });
}

async function showDecision() {
  const plan = state.train;
  if (!parsed.inputs.includes(plan.points) || !parsed.steps.some((step) => step.outputs.includes(plan.output))) return;
  const current = generation;
  const output = await decision(parsed, inputs, plan);
  if (current !== generation) return;
  drawBoundary($("boundary"), { ...output, points: inputs[plan.points].value, labels: inputs[plan.labels].value.flat() });
}

// --------------------------------------------------------------------------------------------------------------- actions
function setInput(name, value) {
  trained = null;
  inputs[name] = { ...inputs[name], value };
  state.values[name] = value;
  if (state.mode === "expression") delete state.values[name];
  refresh();
}

async function doTrain() {
  if (training) {
    training.abort();
    return;
  }
  const plan = planOf();
  if (!plan.variables.length || !result || result.failure) {
    $("training-text").textContent = "Choose inputs to train.";
    return;
  }
  training = new AbortController();
  $("train").textContent = "Stop";
  const [{ signal }, current] = [training, generation];
  try {
    while (running) await new Promise((resolve) => setTimeout(resolve, 10));
    running = true; // nothing else may change the variables now
    const requests = recipe(parsed, inputs, plan, result.target);
    untrained ??= { ...inputs };
    losses = [];
    for await (const { done, losses: further } of train(parsed, inputs, plan, result.target, signal)) {
      if (current !== generation) break;
      losses.push(...further);
      trained = requests;
      $("training-text").textContent = `Step ${done} of ${plan.steps}: loss ${short(losses.at(-1))}`;
      $("losses-panel").classList.remove("hidden");
      drawSeries($("losses"), losses, "Loss");
      if (plan.points) await showDecision();
    }
  } catch (error) {
    if (error.name === "AbortError" || current === generation) showProblem(error);
  } finally {
    running = false;
    training = null;
    $("train").textContent = "Train";
    refresh();
  }
}

function startAgain() {
  training?.abort();
  if (untrained) inputs = untrained;
  [untrained, trained, losses] = [null, null, []];
  $("losses-panel").classList.add("hidden");
  $("training-text").textContent = "";
  refresh();
}

function showRunning(isRunning) {
  $("cancel").classList.toggle("hidden", !isRunning);
  $("progress").classList.toggle("hidden", !isRunning);
  $("run").disabled = isRunning;
  $("progress").removeAttribute("value");
  $("progress-text").textContent = isRunning ? "Running …" : "";
}

function showProgress({ iteration, iterations, done, total }) {
  const [part, whole] = iterations ? [iteration, iterations] : [done, total];
  if (whole) {
    $("progress").max = whole;
    $("progress").value = part;
  }
  $("progress-text").textContent = iteration ? `${iteration.toLocaleString("en")}${iterations ? ` of ${iterations.toLocaleString("en")}` : ""} iterations` : "Running …";
}

function setMode(mode) {
  if (mode === state.mode) return;
  if (mode === "program") {
    const text = `${body(shownProgram ?? { commands: [], fetch: [] })}\n`;
    lastExpression = { ...currentState(), values: Object.fromEntries(Object.entries(inputs).map(([name, { value }]) => [name, value])) };
    load(null, { mode, text });
  } else load(null, lastExpression ?? copyOf(START));
}
let lastExpression = null;

async function copy(button, text) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Press Ctrl+C";
    const selection = getSelection();
    selection.selectAllChildren($("code"));
  }
  setTimeout(() => (button.textContent = label), 1500);
}

/** Names that lines of the text define, as `y` in `y = x ** 2`; also while another line cannot be read. */
const definedIn = (text) => [...text.matchAll(/^[ \t]*([A-Za-z_]\w*)[ \t]*=(?!=)/gm)].map(([, name]) => name);

let completions = null;
async function complete(word) {
  completions ??= catalogue().then(({ ops }) => [
    ...SHORT_NAMES.map((label) => ({ label, apply: `${label}(`, type: "function" })),
    ...ops.map(({ name, inputs: takes, documentation, tensorflow }) => ({ label: name, boost: tensorflow.length ? 0 : -99, apply: `${name}(`, detail: `(${takes.join(", ")})`, info: documentation.split("\n")[0], type: "function" })),
  ]);
  const own = [...definedIn(editor.text), ...(parsed ? [...parsed.inputs, ...namesIn(parsed)] : [])];
  const names = [...new Set(own)].filter((name) => name !== word || definedIn(editor.text).includes(word));
  const variables = names.map((label) => ({ label, type: "variable", boost: 99 }));
  return [...variables, ...(await completions).filter(({ label }) => !names.includes(label))];
}

/** Arrow keys among tabs and radios. */
function roving(parent) {
  parent.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const items = [...parent.children];
    const next = items[(items.indexOf(document.activeElement) + by + items.length) % items.length];
    next.focus();
    next.click();
    event.preventDefault();
  });
}

// ----------------------------------------------------------------------------------------------------------------- start
const kindButtons = Object.fromEntries(
  Object.entries(KINDS).map(([kind, title]) => {
    const button = element("button", { type: "button", role: "radio", "data-kind": kind }, title);
    button.addEventListener("click", () => {
      state.kind = kind;
      showState();
      refresh();
    });
    return [kind, button];
  }),
);
$("kinds").append(...Object.values(kindButtons));
$("gallery").append(
  element("a", { href: "#" }, "A product"),
  ...Object.entries(PRESETS).map(([name, { title, about }]) => element("a", { href: `#${name}`, title: about }, title)),
);
$("languages").append(
  ...Object.entries(LANGUAGES).map(([name, [title]]) => {
    const tab = element("button", { type: "button", role: "tab", "data-language": name, "aria-controls": "code" }, title);
    tab.addEventListener("click", () => {
      language = name;
      showCode();
    });
    return tab;
  }),
);

const inputView = new Inputs($("inputs"), setInput);
const vectorView = new Inputs($("vectors"), (label, value) => {
  state.vectors[label.slice(2, -1)] = value;
  refresh();
});
const graph = new GraphView($("graph"), { label: "The graph of the computation", onSelect: showDetails });

const [firstPreset, firstState] = readAddress();
$("editor").replaceChildren();
const editor = new Editor($("editor"), {
  text: firstState.text,
  language: firstState.mode,
  onChange: (text) => {
    state.text = text;
    trained = null;
    if (state.mode === "program") state.values = {};
    clearTimeout(typing);
    typing = setTimeout(() => refresh(), PAUSE);
  },
  onRun: () => refresh({ loops: true }),
  complete,
});

$("tab-expression").addEventListener("click", () => setMode("expression"));
$("tab-program").addEventListener("click", () => setMode("program"));
$("target").addEventListener("change", () => {
  state.target = $("target").value;
  refresh();
});
$("plot-choice").addEventListener("change", () => {
  state.plot = $("plot-choice").value;
  refresh();
});
$("matrix-choice").addEventListener("change", showMatrices);
$("share").addEventListener("click", () => copy($("share"), location.href));
$("copy").addEventListener("click", () => copy($("copy"), $("code").textContent));
$("run").addEventListener("click", () => refresh({ loops: true }));
$("cancel").addEventListener("click", () => cancel().catch(showProblem));
startPublishing(() => ({ text: state.text, inputs }));
$("train").addEventListener("click", doTrain);
$("untrain").addEventListener("click", startAgain);
$("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setApiKey($("key").value);
  $("key").value = "";
  refresh();
});
for (const list of [$("kinds"), $("languages"), document.querySelector(".left .tabs")]) roving(list);
addEventListener("hashchange", () => {
  if (location.hash.slice(1) !== ownHash) load(...readAddress());
});
addEventListener("pagehide", end);
let resizing = null;
addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => result && state.mode === "expression" && refresh(), 200);
});
prepare();
load(firstPreset, firstState);
