/** What a session holds: variables and tensors, tapes, functions. */

import { ProblemError, whole } from "./problem.js";
import { Tensor } from "./tensor.js";

/**
 * @typedef {import("./types.d.ts").Schemas} Schemas
 * @typedef {import("./types.d.ts").Options} Options
 * @typedef {import("./types.d.ts").WhenLost} WhenLost
 * @typedef {import("./client.js").Teletape} Teletape
 */

/**
 * @template {keyof Schemas} Name
 * @typedef {import("./types.d.ts").Answer<Name>} Answer
 */

const part = encodeURIComponent;

/** Questions whose answers have no tensors: they have no parameter `full`. */
const WITHOUT_TENSORS = ["explain", "check_gradients", "watch", "reset", "estimate", "gradient_statistics"];

/** Returns the path of a question, which is answered with all elements of its tensors. @param {string} question */
function asked(question) {
  return WITHOUT_TENSORS.includes(question) ? question : `${question}?full=true`;
}

/** Codes of a session that is no more. */
const LOST = ["session_ended", "unknown_session"];

/**
 * A session: what it holds stays on the server until `end`, or until it has been idle for too long.
 *
 * A session is lost if the server ends it or is started again. With `whenLost`, the request that meets the loss creates
 * a session with the same id (or another, if the server chose it), calls `whenLost` with it and the `ProblemError`, and
 * is sent again once; other requests wait for it. `whenLost` makes variables, tensors and functions in the session that
 * it gets, under ids of its own. If another program has created the session meanwhile, `whenLost` is not called. Tapes
 * are not made again: their requests throw the `ProblemError`.
 */
export class Session {
  /** @type {Schemas["NewSession"]} */
  #body;
  /** @type {WhenLost | undefined} */
  #whenLost;
  /** @type {Promise<void> | undefined} */
  #restoration;
  #hasEnded = false;

  /**
   * @param {Teletape} server
   * @param {string} id
   * @param {{facts?: Schemas["Session"], body?: Schemas["NewSession"], whenLost?: WhenLost | undefined}} [creation] -
   *   `facts`: the answer to its creation; none if another program has made it; `body`: what creates it again.
   */
  constructor(server, id, { facts, body = { id }, whenLost } = {}) {
    this.server = server;
    this.id = id;
    /** @type {Schemas["Session"] | null} */
    this.facts = facts ?? null;
    /** How often the session was lost and made again. */
    this.turn = 0;
    this.#body = body;
    this.#whenLost = whenLost;
  }

  get path() {
    return `/v1/sessions/${part(this.id)}`;
  }

  /** Waits while the session is being made again. */
  async isThere() {
    await this.#restoration?.catch(() => {});
  }

  /** Whether a refusal says that the session is lost, and `whenLost` makes it again. @param {ProblemError} problem */
  isLost(problem) {
    return this.#whenLost !== undefined && !this.#hasEnded && LOST.includes(problem.code);
  }

  /**
   * Makes the session again, unless that has been done since.
   *
   * @param {ProblemError} problem - tells of the loss.
   * @param {number | undefined} turn - `turn` when the request was sent that met it.
   */
  restored(problem, turn) {
    if (turn === this.turn) {
      this.#restoration ??= this.#restored(problem).finally(() => (this.#restoration = undefined));
    }
    return this.#restoration ?? Promise.resolve();
  }

  /** @param {ProblemError} problem */
  async #restored(problem) {
    const { replace: _, ...body } = this.#body;
    const [facts, isNew] = await this.server.response("POST", "/v1/sessions", { body }, async (response) => [
      await whole(response.json()),
      response.status === 201,
    ]);
    if (isNew) {
      const session = new Session(this.server, facts.id, { facts });
      try {
        await this.#whenLost?.(session, problem);
      } catch (error) {
        await session.end().catch(() => {}); // the next request begins anew
        throw error;
      }
    }
    this.id = facts.id;
    this.facts = facts;
    this.turn += 1;
  }

  /**
   * Sends a request about something in the session.
   *
   * @param {string} method
   * @param {string} path - after that of the session.
   * @param {unknown} [body]
   * @param {Options} [options]
   * @returns {Promise<any>}
   */
  request(method, path, body, options) {
    return this.server.request(method, path, body, { ...options, home: this });
  }

  /**
   * Creates a variable.
   *
   * @param {string} id
   * @param {Schemas["NewVariable"]["value"] | Tensor} value - numbers are float32 unless a `Tensor` says otherwise.
   * @param {Options & {trainable?: boolean}} [options]
   * @returns {Answer<"Variable">}
   */
  variable(id, value, { trainable = true, ...options } = {}) {
    return value instanceof Tensor
      ? this.#upload("POST", `/variables?id=${part(id)}&trainable=${trainable}`, value, options)
      : this.request("POST", "/variables", { id, value, trainable }, options);
  }

  /**
   * Creates a tensor.
   *
   * @param {string} id
   * @param {Schemas["NewTensor"]["value"] | Tensor} value
   * @param {Options} [options]
   * @returns {Answer<"Tensor">}
   */
  tensor(id, value, options = {}) {
    return value instanceof Tensor
      ? this.#upload("POST", `/tensors?id=${part(id)}`, value, options)
      : this.request("POST", "/tensors", { id, value }, options);
  }

  /**
   * Assigns to a variable.
   *
   * @param {string} id
   * @param {Schemas["Assignment"]["value"] | Tensor} value - an id, numbers or a tensor.
   * @param {Options & {mode?: "set" | "add" | "sub"}} [options]
   * @returns {Answer<"Variable">}
   */
  assign(id, value, { mode = "set", ...options } = {}) {
    return value instanceof Tensor
      ? this.#upload("PUT", `/variables/${part(id)}?mode=${mode}`, value, options)
      : this.request("PUT", `/variables/${part(id)}`, { value, mode }, options);
  }

  /**
   * Returns a tensor, the result of an op, or the value of a variable, with all its elements; as bytes on the way.
   *
   * @param {string} id
   * @param {{kind?: "tensor" | "variable", signal?: AbortSignal, timeout?: number}} [options]
   */
  read(id, { kind = "tensor", ...options } = {}) {
    const headers = { Accept: "application/octet-stream" };
    return this.server.response("GET", `/${kind}s/${part(id)}`, { headers, ...options, home: this }, async (response) => {
      const shape = response.headers.get("Tensor-Shape") ?? "";
      return Tensor.fromBytes(
        await whole(response.arrayBuffer()),
        /** @type {import("./tensor.js").Dtype} */ (response.headers.get("Tensor-Dtype")),
        shape ? shape.split(",").map(Number) : [],
      );
    });
  }

  /**
   * Runs ops on no tape.
   *
   * @param {Schemas["OpCalls"]} body
   * @param {Options} [options]
   * @returns {Answer<"OpResults">}
   */
  ops(body, options) {
    return this.request("POST", "/ops?full=true", body, options);
  }

  /**
   * Creates a tape, which records the ops that are sent to it.
   *
   * @param {Schemas["NewTape"]} [body]
   * @param {Options} [options]
   */
  async tape(body = {}, options) {
    const { id } = await this.request("POST", "/tapes", body, options);
    return new Tape(this, id);
  }

  /**
   * Saves a function: steps on named inputs, as data.
   *
   * @param {Schemas["NewFunction"]} body
   * @param {Options} [options]
   */
  async function(body, options) {
    const { id } = await this.request("POST", "/functions", body, options);
    return new SavedFunction(this, id);
  }

  /** Returns the function of the session that has this id. No request is sent. @param {string} id */
  existingFunction(id) {
    return new SavedFunction(this, id);
  }

  /** Runs commands in the session, in order; what they create stays. @param {Schemas["SessionRun"]} body @param {Options} [options] @returns {Answer<"SessionRunAnswer">} */
  run(body, options) {
    return this.request("POST", "/run?full=true", body, options);
  }

  /** Stops running and waiting work; earlier results stay. */
  cancel() {
    return this.server.request("POST", `${this.path}/cancel`);
  }

  /** Ends the session and everything in it. */
  end() {
    this.#hasEnded = true;
    return this.server.request("DELETE", this.path);
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {Tensor} tensor
   * @param {Options} options
   * @returns {Promise<any>}
   */
  #upload(method, path, tensor, { idempotencyKey, onProgress: _, ...ends }) {
    const headers = {
      "Tensor-Dtype": tensor.dtype,
      "Tensor-Shape": tensor.shape.join(","),
      ...(idempotencyKey ? { "Idempotency-Key": idempotencyKey } : {}),
    };
    return this.server.response(method, path, { body: tensor.bytes, headers, ...ends, home: this }, (response) =>
      whole(response.json()),
    );
  }
}

/** A tape: the record of ops, which answers for their derivatives. */
export class Tape {
  /**
   * @param {Session} session
   * @param {string} id
   */
  constructor(session, id) {
    this.session = session;
    this.id = id;
  }

  get path() {
    return `${this.session.path}/tapes/${part(this.id)}`;
  }

  /** Runs ops, and records them. @param {Schemas["OpCalls"]} body @param {Options} [options] @returns {Answer<"OpResults">} */
  ops(body, options) {
    return this.#ask("ops", body, options);
  }

  /** Has the tape watch tensors. @param {Schemas["WatchTensors"]} body @param {Options} [options] @returns {Promise<any>} */
  watch(body, options) {
    return this.#ask("watch", body, options);
  }

  /** The gradient of the targets' sum. @param {Schemas["GradientQuestion"]} body @param {Options} [options] @returns {Answer<"Derivatives">} */
  gradient(body, options) {
    return this.#ask("gradient", body, options);
  }

  /** The derivative of each element of a target. @param {Schemas["JacobianQuestion"]} body @param {Options} [options] @returns {Answer<"Derivatives">} */
  jacobian(body, options) {
    return this.#ask("jacobian", body, options);
  }

  /** The Jacobian of each example of a batch. @param {Schemas["BatchJacobianQuestion"]} body @param {Options} [options] @returns {Answer<"Derivatives">} */
  batchJacobian(body, options) {
    return this.#ask("batch_jacobian", body, options);
  }

  /** Several rows of output gradients times the Jacobian. @param {Schemas["VjpsQuestion"]} body @param {Options} [options] @returns {Answer<"Derivatives">} */
  vjps(body, options) {
    return this.#ask("vjps", body, options);
  }

  /** Several questions in one request. @param {Schemas["Questions"]} body @param {Options} [options] @returns {Answer<"QuestionResults">} */
  questions(body, options) {
    return this.#ask("questions", body, options);
  }

  /** Second derivatives. @param {Schemas["HessianQuestion"]} body @param {Options} [options] @returns {Answer<"HessianBlocks">} */
  hessian(body, options) {
    return this.#ask("hessian", body, options);
  }

  /** The entries of a Jacobian that may differ from zero. @param {Schemas["SparseJacobianQuestion"]} body @param {Options} [options] @returns {Answer<"SparseAnswer">} */
  sparseJacobian(body, options) {
    return this.#ask("sparse_jacobian", body, options);
  }

  /** The entries of a Hessian that may differ from zero. @param {Schemas["SparseHessianQuestion"]} body @param {Options} [options] @returns {Answer<"SparseAnswer">} */
  sparseHessian(body, options) {
    return this.#ask("sparse_hessian", body, options);
  }

  /** The Hessian times vectors. @param {Schemas["HvpQuestion"]} body @param {Options} [options] @returns {Answer<"Derivatives">} */
  hvp(body, options) {
    return this.#ask("hvp", body, options);
  }

  /** Why a gradient is null, zero or not finite. @param {Schemas["ExplainQuestion"]} body @param {Options} [options] @returns {Answer<"Explanations">} */
  explain(body, options) {
    return this.#ask("explain", body, options);
  }

  /** Compares the gradients with finite differences. @param {Schemas["TapeCheck"]} body @param {Options} [options] @returns {Answer<"CheckReport">} */
  checkGradients(body, options) {
    return this.#ask("check_gradients", body, options);
  }

  /** Norms, non-finite and zero elements of gradients. @param {Schemas["GradientStatisticsQuestion"]} body @param {Options} [options] @returns {Answer<"GradientsNumbers">} */
  gradientStatistics(body, options) {
    return this.#ask("gradient_statistics", body, options);
  }

  /** The multiply-adds and bytes that a derivative would take. @param {Schemas["EstimateQuestion"]} body @param {Options} [options] @returns {Answer<"DerivativeEstimate">} */
  estimate(body, options) {
    return this.#ask("estimate", body, options);
  }

  /** Empties the tape, which records again. @param {Schemas["ResetTape"]} [body] @param {Options} [options] @returns {Answer<"Tape">} */
  reset(body = {}, options) {
    return this.#ask("reset", body, options);
  }

  /** The graph: nodes and edges. @returns {Answer<"Graph">} */
  graph() {
    return this.session.server.request("GET", `${this.path}/graph`);
  }

  /** Deletes the tape; the tensors stay. */
  end() {
    return this.session.server.request("DELETE", this.path);
  }

  /**
   * @param {string} question
   * @param {unknown} body
   * @param {Options} [options]
   * @returns {Promise<any>}
   */
  #ask(question, body, options) {
    return this.session.server.request("POST", `${this.path}/${asked(question)}`, body, options);
  }
}

/** A function of the session: defined once, then called and differentiated by name. */
export class SavedFunction {
  /**
   * @param {Session} session
   * @param {string} id
   */
  constructor(session, id) {
    this.session = session;
    this.id = id;
  }

  get path() {
    return `${this.session.path}/functions/${part(this.id)}`;
  }

  /** Calls the function. @param {Schemas["FunctionCall"]} body @param {Options} [options] @returns {Answer<"OpResults">} */
  call(body, options) {
    return this.#ask("call", body, options);
  }

  /** The gradient of the targets' sum. @param {Schemas["FunctionGradientQuestion"]} body @param {Options} [options] @returns {Answer<"FunctionDerivatives">} */
  gradient(body, options) {
    return this.#ask("gradient", body, options);
  }

  /** Outputs and gradients in one pass. @param {Schemas["ValueAndGradientQuestion"]} body @param {Options} [options] @returns {Answer<"FunctionDerivatives">} */
  valueAndGradient(body, options) {
    return this.#ask("value_and_gradient", body, options);
  }

  /** The derivative of each element of an output. @param {Schemas["FunctionJacobianQuestion"]} body @param {Options} [options] @returns {Answer<"FunctionDerivatives">} */
  jacobian(body, options) {
    return this.#ask("jacobian", body, options);
  }

  /** Second derivatives. @param {Schemas["FunctionHessianQuestion"]} body @param {Options} [options] @returns {Answer<"FunctionHessian">} */
  hessian(body, options) {
    return this.#ask("hessian", body, options);
  }

  /** The entries of a Jacobian that may differ from zero. @param {Schemas["FunctionSparseJacobianQuestion"]} body @param {Options} [options] @returns {Answer<"FunctionSparseDerivative">} */
  sparseJacobian(body, options) {
    return this.#ask("sparse_jacobian", body, options);
  }

  /** The entries of a Hessian that may differ from zero. @param {Schemas["FunctionSparseHessianQuestion"]} body @param {Options} [options] @returns {Answer<"FunctionSparseDerivative">} */
  sparseHessian(body, options) {
    return this.#ask("sparse_hessian", body, options);
  }

  /** The function as the body of a loop that runs while `condition` is true. @param {Schemas["WhileLoop"]} body @param {Options} [options] @returns {Answer<"OpResults">} */
  while(body, options) {
    return this.#ask("while", body, options);
  }

  /** The function as the body of a loop over rows, or of a known length. @param {Schemas["ScanLoop"]} body @param {Options} [options] @returns {Answer<"OpResults">} */
  scan(body, options) {
    return this.#ask("scan", body, options);
  }

  /** The Hessian times vectors. @param {Schemas["FunctionHvpQuestion"]} body @param {Options} [options] @returns {Answer<"FunctionDerivatives">} */
  hvp(body, options) {
    return this.#ask("hvp", body, options);
  }

  /** Output gradients times the Jacobian. @param {Schemas["FunctionVjpQuestion"]} body @param {Options} [options] @returns {Answer<"FunctionDerivatives">} */
  vjp(body, options) {
    return this.#ask("vjp", body, options);
  }

  /** The Jacobian times tangents. @param {Schemas["FunctionJvpQuestion"]} body @param {Options} [options] @returns {Answer<"FunctionTangents">} */
  jvp(body, options) {
    return this.#ask("jvp", body, options);
  }

  /** Many steps of an optimizer in one request; `onProgress` gets the step and the loss. @param {Schemas["Training"]} body @param {Options} [options] @returns {Answer<"TrainingAnswer">} */
  train(body, options) {
    return this.#ask("train", body, options);
  }

  /** Why a gradient is null, zero or not finite. @param {Schemas["FunctionExplainQuestion"]} body @param {Options} [options] @returns {Answer<"Explanations">} */
  explain(body, options) {
    return this.#ask("explain", body, options);
  }

  /** Compares the gradients with finite differences. @param {Schemas["FunctionCheck"]} body @param {Options} [options] @returns {Answer<"CheckReport">} */
  checkGradients(body, options) {
    return this.#ask("check_gradients", body, options);
  }

  /** Deletes the function. */
  end() {
    return this.session.server.request("DELETE", this.path);
  }

  /**
   * @param {string} question
   * @param {unknown} body
   * @param {Options} [options]
   * @returns {Promise<any>}
   */
  #ask(question, body, options) {
    return this.session.request("POST", `/functions/${part(this.id)}/${asked(question)}`, body, options);
  }
}
