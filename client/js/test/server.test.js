// Against a live server: TELETAPE_URL, and TELETAPE_API_KEY if it has keys.

import assert from "node:assert/strict";
import test, { after, before } from "node:test";

import { ProblemError, PublishedFunction, SavedFunction, Tape, Teletape, Tensor } from "../src/index.js";

const server = new Teletape(process.env.TELETAPE_URL, { apiKey: process.env.TELETAPE_API_KEY });
let session;

before(async () => {
  session = await server.session({ id: "javascript", replace: true });
});
after(() => session.end());

test("a gradient in one request", async () => {
  const { values } = await server.run({
    commands: [
      { do: "variable", id: "x", value: new Tensor(2) },
      { do: "tape.open", id: "t" },
      { do: "op", op: "sin", inputs: ["x"], outputs: ["s"] },
      { do: "op", op: "mul", inputs: ["s", "x"], outputs: ["y"] },
      { do: "gradient", tape: "t", targets: ["y"], sources: ["x"], outputs: ["dx"] },
    ],
    fetch: ["dx"],
  });
  assert.ok(Math.abs(values.dx.item() - (Math.sin(2) + 2 * Math.cos(2))) < 1e-6);
});

test("a null says why", async () => {
  const { values, why } = await server.run({
    commands: [
      { do: "variable", id: "x", value: 2.7 },
      { do: "tape.open", id: "t" },
      { do: "op", op: "round", inputs: ["x"], outputs: ["y"] },
      { do: "gradient", tape: "t", targets: ["y"], sources: ["x"], outputs: ["dx"] },
    ],
    fetch: ["dx"],
  });
  assert.equal(values.dx, null);
  assert.equal(why.dx.code, "non_differentiable_op");
  assert.equal(why.dx.op, "round");
});

test("typed arrays go up and come back as they are", async () => {
  for (const tensor of [
    new Tensor(new Float32Array([1.5, NaN, -Infinity, 4]), { shape: [2, 2] }),
    new Tensor(new BigInt64Array([2n ** 62n, -1n])),
    new Tensor(new Uint8Array([1, 0]), { dtype: "bool" }),
    new Tensor(3.5, { dtype: "float64" }),
    new Tensor(new Float32Array(0), { shape: [0, 3] }),
  ]) {
    const id = `raw-${tensor.dtype}-${tensor.data.length}`;
    await session.tensor(id, tensor);
    assert.deepEqual(await session.read(id), tensor);
  }
});

test("a tape answers more than once", async () => {
  await session.variable("w", new Tensor(new Float32Array([1, 2, 3])));
  const tape = await session.tape({ persistent: true });
  const { values } = await tape.ops({
    ops: [
      { op: "square", inputs: ["w"], outputs: ["squares"] },
      { op: "reduce_sum", inputs: ["squares"], outputs: ["loss"] },
    ],
  });
  assert.equal(values.loss.item(), 14);
  const { derivatives } = await tape.gradient({ targets: ["loss"], sources: ["w"] });
  assert.deepEqual(derivatives[0].value, new Tensor([2, 4, 6]));
  assert.ok((await tape.graph()).nodes.length > 2);
  const { explanations } = await tape.explain({ targets: ["loss"], sources: ["w"] });
  assert.equal(explanations[0].outcome, "gradient");
  await session.assign("w", new Tensor([1, 1, 1]), { mode: "sub" });
  assert.deepEqual((await session.read("w", { kind: "variable" })).toArray(), [0, 1, 2]);
  await tape.end();
});

test("a function answers every question by name", async () => {
  const error = await session.function({
    inputs: ["w", "x"],
    steps: [
      { op: "mul", inputs: ["w", "x"], outputs: ["y"] },
      { op: "square", inputs: ["y"], outputs: ["z"] },
      { op: "reduce_sum", inputs: ["z"], outputs: ["sum"] },
    ],
    outputs: ["sum"],
  });
  const inputs = { w: new Tensor([1, 2]), x: new Tensor([3, 4]) };
  const answer = await error.valueAndGradient({ inputs, sources: ["w"] });
  assert.equal(answer.values.sum.item(), 73);
  assert.deepEqual(answer.derivatives[0].value.toArray(), [18, 64]);
  assert.deepEqual((await error.gradient({ inputs, sources: ["w"] })).derivatives[0].value.toArray(), [18, 64]);
  assert.deepEqual((await error.jacobian({ inputs, sources: ["w"] })).derivatives[0].value.toArray(), [18, 64]);
  const { derivatives } = await error.hvp({ inputs, sources: ["w"], vectors: [new Tensor([1, 0])] });
  assert.deepEqual(derivatives[0].value.toArray(), [18, 0]);
  const tangents = await error.jvp({ inputs, sources: ["w"], tangents: [new Tensor([1, 0])] });
  assert.equal(tangents.derivatives[0].value.item(), 18);
  const cotangents = await error.vjp({ inputs, sources: ["w"], output_gradients: [new Tensor(2)] });
  assert.deepEqual(cotangents.derivatives[0].value.toArray(), [36, 128]);
  const { values } = await error.call({ inputs, outputs: ["kept"] });
  assert.equal(values.kept.item(), 73);
  assert.equal((await error.explain({ inputs, sources: ["w"] })).explanations[0].outcome, "gradient");
  await error.end();
});

test("logistic regression is one request, with its progress", async () => {
  await session.variable("weights", new Tensor([[0], [0]]));
  const loss = await session.function({
    inputs: ["w", "x", "y"],
    steps: [
      { op: "matmul", inputs: ["x", "w"], outputs: ["logits"] },
      { op: "sigmoid_cross_entropy", inputs: ["y", "logits"], outputs: ["losses"] },
      { op: "reduce_mean", inputs: ["losses"], outputs: ["loss"] },
    ],
    outputs: ["loss"],
  });
  const steps = [];
  const { losses, values } = await loss.train(
    {
      inputs: { w: "weights", x: [[1, -2], [1, -1], [1, 1], [1, 2]], y: [[0], [0], [1], [1]] },
      optimizer: { name: "sgd", learning_rate: 1 },
      steps: 50,
      fetch: ["weights"],
    },
    { onProgress: (progress) => steps.push(progress) },
  );
  assert.equal(losses.data.length, 50);
  assert.ok(losses.data[49] < 0.02 && losses.data[0] > 0.69);
  assert.deepEqual(values.weights, await session.read("weights", { kind: "variable" }));
  await loss.end();
});

test("a long request reports its progress", async () => {
  const seen = [];
  const { values } = await server.run(
    {
      commands: [
        {
          do: "function",
          id: "fall",
          inputs: ["x"],
          outputs: ["y"],
          steps: [{ op: "pow", inputs: ["x", 0.99999], outputs: ["y"] }],
        },
        { do: "scan", body: "fall", inputs: [2.5], carried: 1, length: 200000, outputs: ["last"] },
      ],
      fetch: ["last"],
    },
    { onProgress: (progress) => seen.push(progress) },
  );
  assert.ok(values.last.item() > 1);
  assert.ok(seen.length >= 1);
  assert.ok(seen.every(({ total }) => total === 2 || total === 3 || total === 0), JSON.stringify(seen[0]));
});

test("a retry with the same key happens once", async () => {
  await session.variable("counter", new Tensor(0));
  for (let attempt = 0; attempt < 2; attempt += 1) {
    await session.assign("counter", 1.5, { mode: "add", idempotencyKey: "the same" });
  }
  assert.equal((await session.read("counter", { kind: "variable" })).item(), 1.5);
});

test("sessions and functions of other programs are there by their ids", async () => {
  const text = { text: "error = sum((w * x) ** 2)" };
  const { inputs, steps, outputs } = await server.expressions(text);
  const { id } = await session.function({ id: "of_another", inputs, steps, outputs });
  const other = new Teletape(process.env.TELETAPE_URL, { apiKey: process.env.TELETAPE_API_KEY });
  const loss = other.existingSession("javascript").existingFunction(id);
  const values = { w: new Tensor([1, 2]), x: new Tensor([3, 4]) };
  assert.equal((await loss.call({ inputs: values, outputs: ["called"] })).values.called.item(), 73);
  const { derivative } = await loss.sparseHessian({ inputs: values, sources: ["w"] });
  assert.deepEqual([derivative.entries, derivative.shape], [2, [2, 2]]);
  const answer = await other.existingSession("javascript").run({
    scratch: true,
    commands: [{ do: "op", op: "square", inputs: [new Tensor(3)], outputs: ["nine"] }],
    fetch: ["nine"],
  });
  assert.equal(answer.values.nine.item(), 9);
  await loss.end();
});

test("a session that another program has ended is made again", async () => {
  const losses = [];
  const whenLost = async (session, problem) => {
    losses.push(problem.code);
    await session.variable("w", new Tensor([1, 2]));
    const { inputs, steps, outputs } = await server.expressions({ text: "error = sum((w * x) ** 2)" });
    await session.function({ id: "error", inputs, steps, outputs });
  };
  const mortal = server.existingSession("javascript-mortal", { whenLost });
  const error = mortal.existingFunction("error");
  const body = { inputs: { w: "w", x: [3, 4] }, sources: ["w"] };
  for (let life = 1; life <= 2; life += 1) {
    const { derivatives } = await error.gradient(body);
    assert.deepEqual(derivatives[0].value.toArray(), [18, 64]);
    assert.deepEqual((await mortal.read("w", { kind: "variable" })).toArray(), [1, 2]);
    assert.equal(losses.length, life);
    await server.request("DELETE", mortal.path);
  }
  assert.deepEqual(losses, ["unknown_session", "session_ended"]);
});

test("tapes and functions have a method for each question of the OpenAPI document", async () => {
  const { paths } = await server.request("GET", "/openapi.json");
  const holders = [
    [Tape, "/v1/sessions/{session}/tapes/{tape}/"],
    [SavedFunction, "/v1/sessions/{session}/functions/{function}/"],
    [PublishedFunction, "/v1/published/{name}/"],
  ];
  for (const [holder, prefix] of holders) {
    const questions = Object.entries(paths)
      .filter(([path, { post }]) => post && path.startsWith(prefix))
      .map(([path]) => path.split("/").at(-1).replace(/_(.)/g, (_, letter) => letter.toUpperCase()));
    assert.ok(questions.length > 8);
    assert.deepEqual(questions.filter((name) => typeof holder.prototype[name] !== "function"), []);
  }
});

test("questions about a tape come with all elements, or without tensors", async () => {
  await session.tensor("rows", new Tensor([[1, 2], [3, 4]]));
  const tape = await session.tape({ persistent: true, replayable: true });
  await tape.watch({ tensors: ["rows"] });
  await tape.ops({
    ops: [
      { op: "square", inputs: ["rows"], outputs: ["squared_rows"] },
      { op: "reduce_sum", inputs: ["squared_rows"], outputs: ["sum_of_rows"] },
    ],
  });
  const jacobian = await tape.batchJacobian({ targets: ["squared_rows"], sources: ["rows"] });
  assert.deepEqual(jacobian.derivatives[0].value.shape, [2, 2, 2]);
  const vjps = await tape.vjps({ targets: ["sum_of_rows"], sources: ["rows"], output_gradients: [new Tensor([1, 2])] });
  assert.deepEqual(vjps.derivatives[0].value.shape, [2, 2, 2]);
  const question = { targets: ["sum_of_rows"], sources: ["rows"] };
  const { statistics } = await tape.gradientStatistics(question);
  assert.equal(statistics[0].max_abs, 8);
  assert.equal((await tape.estimate({ question: "gradient", ...question })).rows, 1);
  assert.equal((await tape.checkGradients(question)).agrees, true);
  assert.equal((await tape.questions({ questions: [question] })).results.length, 1);
  assert.equal((await tape.reset()).ops, 0);
  await tape.end();
});

test("a refusal is an error with a code and a page", async () => {
  await assert.rejects(session.read("nothing"), (error) => {
    assert.ok(error instanceof ProblemError);
    assert.equal(error.code, "unknown_id");
    assert.equal(error.status, 404);
    assert.match(error.type, /^http.*\/problems\/unknown_id$/);
    return true;
  });
});

test("a server that is not there is named", async () => {
  const nowhere = new Teletape("http://127.0.0.1:1");
  await assert.rejects(nowhere.info(), (error) => error.code === "no_answer" && /127\.0\.0\.1:1/.test(error.message));
});

test("a published function is called by its name", async () => {
  const cube = server.published("javascript-cube");
  const facts = await cube.publish({ function: { text: "y = x ** 3" }, inputs: { x: { dtype: "float32", shape: [2] } } });
  assert.equal(facts.name, "javascript-cube");
  const inputs = { x: [1, 2] };
  assert.deepEqual((await cube.call({ inputs })).values.y, new Tensor([1, 8]));
  const { values, derivatives } = await cube.valueAndGradient({ inputs });
  assert.deepEqual(values.y, new Tensor([1, 8]));
  assert.deepEqual(derivatives[0].value, new Tensor([3, 12]));
  const latest = server.published(`javascript-cube@${facts.aliases.latest}`);
  assert.deepEqual((await latest.gradient({ inputs })).derivatives[0].value, new Tensor([3, 12]));
  assert.deepEqual((await cube.vjp({ inputs, output_gradients: [[1, 0]] })).derivatives[0].value, new Tensor([3, 0]));
  assert.deepEqual((await cube.jvp({ inputs, tangents: [[1, 1]] })).derivatives[0].value, new Tensor([3, 12]));
  assert.deepEqual((await cube.jacobian({ inputs })).derivatives[0].value.shape, [2, 2]);
  assert.deepEqual((await cube.hessian({ inputs })).derivatives[0][0].value.toArray(), [[6, 0], [0, 12]]);
  assert.deepEqual((await cube.hvp({ inputs, vectors: [[1, 1]] })).derivatives[0].value, new Tensor([6, 12]));
  assert.ok((await cube.check({ inputs })).agrees);
  assert.deepEqual((await cube.facts()).aliases, facts.aliases);
  assert.equal((await cube.versions()).versions.length, 1);
  await cube.delete();
  await assert.rejects(cube.facts(), (error) => error instanceof ProblemError && error.status === 404);
});
