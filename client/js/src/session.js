/** What a session holds: variables and tensors, tapes, functions. */

import { Tensor } from "./tensor.js";

/**
 * @typedef {import("./types.d.ts").Schemas} Schemas
 * @typedef {import("./types.d.ts").Options} Options
 * @typedef {import("./client.js").Teletape} Teletape
 */

/**
 * @template {keyof Schemas} Name
 * @typedef {import("./types.d.ts").Answer<Name>} Answer
 */

const part = encodeURIComponent;

/**
 * Asks a question. Answers with tensors have all their elements.
 *
 * @param {Teletape} server
 * @param {string} path
 * @param {unknown} body
 * @param {Options} [options]
 * @returns {Promise<any>}
 */
function ask(server, path, body, options) {
  const hasTensors = !/\/(explain|check_gradients|watch)$/.test(path);
  return server.request("POST", hasTensors ? `${path}?full=true` : path, body, options);
}

/** A session: what it holds stays on the server until `end`, or until it has been idle for too long. */
export class Session {
  /**
   * @param {Teletape} server
   * @param {string} id
   * @param {Schemas["Session"] | null} [facts] - of its creation; null: another program has made it.
   */
  constructor(server, id, facts = null) {
    this.server = server;
    this.id = id;
    this.facts = facts;
    this.path = `/v1/sessions/${part(id)}`;
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
      : this.server.request("POST", `${this.path}/variables`, { id, value, trainable }, options);
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
      : this.server.request("POST", `${this.path}/tensors`, { id, value }, options);
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
      : this.server.request("PUT", `${this.path}/variables/${part(id)}`, { value, mode }, options);
  }

  /**
   * Returns a tensor, the result of an op, or the value of a variable, with all its elements; as bytes on the way.
   *
   * @param {string} id
   * @param {{kind?: "tensor" | "variable", signal?: AbortSignal, timeout?: number}} [options]
   */
  async read(id, { kind = "tensor", ...options } = {}) {
    const headers = { Accept: "application/octet-stream" };
    const response = await this.server.response("GET", `${this.path}/${kind}s/${part(id)}`, { headers, ...options });
    const shape = response.headers.get("Tensor-Shape") ?? "";
    return Tensor.fromBytes(
      await response.arrayBuffer(),
      /** @type {import("./tensor.js").Dtype} */ (response.headers.get("Tensor-Dtype")),
      shape ? shape.split(",").map(Number) : [],
    );
  }

  /**
   * Runs ops on no tape.
   *
   * @param {Schemas["OpCalls"]} body
   * @param {Options} [options]
   * @returns {Answer<"OpResults">}
   */
  ops(body, options) {
    return this.server.request("POST", `${this.path}/ops?full=true`, body, options);
  }

  /**
   * Creates a tape, which records the ops that are sent to it.
   *
   * @param {Schemas["NewTape"]} [body]
   * @param {Options} [options]
   */
  async tape(body = {}, options) {
    const { id } = await this.server.request("POST", `${this.path}/tapes`, body, options);
    return new Tape(this, id);
  }

  /**
   * Saves a function: steps on named inputs, as data.
   *
   * @param {Schemas["NewFunction"]} body
   * @param {Options} [options]
   */
  async function(body, options) {
    const { id } = await this.server.request("POST", `${this.path}/functions`, body, options);
    return new SavedFunction(this, id);
  }

  /** Returns the function of the session that has this id. No request is sent. @param {string} id */
  existingFunction(id) {
    return new SavedFunction(this, id);
  }

  /** Runs commands in the session, in order; what they create stays. @param {Schemas["SessionRun"]} body @param {Options} [options] @returns {Answer<"SessionRunAnswer">} */
  run(body, options) {
    return this.server.request("POST", `${this.path}/run?full=true`, body, options);
  }

  /** Stops running and waiting work; earlier results stay. */
  cancel() {
    return this.server.request("POST", `${this.path}/cancel`);
  }

  /** Ends the session and everything in it. */
  end() {
    return this.server.request("DELETE", this.path);
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {Tensor} tensor
   * @param {Options} options
   */
  async #upload(method, path, tensor, { idempotencyKey, onProgress: _, ...ends }) {
    const response = await this.server.response(method, this.path + path, {
      body: tensor.bytes,
      headers: {
        "Tensor-Dtype": tensor.dtype,
        "Tensor-Shape": tensor.shape.join(","),
        ...(idempotencyKey ? { "Idempotency-Key": idempotencyKey } : {}),
      },
      ...ends,
    });
    return response.json();
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
    this.path = `${session.path}/tapes/${part(id)}`;
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
    return ask(this.session.server, `${this.path}/${question}`, body, options);
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
    this.path = `${session.path}/functions/${part(id)}`;
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
    return ask(this.session.server, `${this.path}/${question}`, body, options);
  }
}
