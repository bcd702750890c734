/** Functions that are called by their names, without a session. */

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

/** A published function: it is called by its name, without a session. */
export class PublishedFunction {
  /**
   * @param {Teletape} server
   * @param {string} name - also "name@version" or "name@alias".
   */
  constructor(server, name) {
    this.server = server;
    this.name = name;
  }

  get path() {
    return `/v1/published/${part(this.name)}`;
  }

  /** Publishes a version of a function under the name. @param {Schemas["Publication"]} body @param {Options & {session?: string}} [options] - `session`: the one whose function and tensors the body names. @returns {Answer<"PublishedFunction">} */
  publish(body, { session, ...options } = {}) {
    const query = session === undefined ? "" : `?session=${part(session)}`;
    return this.server.request("PUT", `${this.path}${query}`, body, options);
  }

  /** Returns its inputs, outputs, weights, versions and visibility. @param {Options} [options] @returns {Answer<"PublishedFunction">} */
  facts(options) {
    return this.server.request("GET", this.path, undefined, options);
  }

  /** Returns its versions and aliases. @param {Options} [options] @returns {Answer<"PublishedVersions">} */
  versions(options) {
    return this.server.request("GET", `${this.path}/versions`, undefined, options);
  }

  /** Calls the function. @param {Schemas["PublishedCallQuestion"]} body @param {Options} [options] @returns {Answer<"PublishedOpResults">} */
  call(body, options) {
    return this.#ask("call", body, options);
  }

  /** The gradient of the targets' sum. @param {Schemas["PublishedGradientQuestion"]} body @param {Options} [options] @returns {Answer<"PublishedFunctionDerivatives">} */
  gradient(body, options) {
    return this.#ask("gradient", body, options);
  }

  /** Outputs and gradients in one pass. @param {Schemas["PublishedValueAndGradientQuestion"]} body @param {Options} [options] @returns {Answer<"PublishedFunctionDerivatives">} */
  valueAndGradient(body, options) {
    return this.#ask("value_and_gradient", body, options);
  }

  /** The derivative of each element of an output. @param {Schemas["PublishedJacobianQuestion"]} body @param {Options} [options] @returns {Answer<"PublishedFunctionDerivatives">} */
  jacobian(body, options) {
    return this.#ask("jacobian", body, options);
  }

  /** Second derivatives. @param {Schemas["PublishedHessianQuestion"]} body @param {Options} [options] @returns {Answer<"PublishedFunctionHessian">} */
  hessian(body, options) {
    return this.#ask("hessian", body, options);
  }

  /** The Hessian times vectors. @param {Schemas["PublishedHvpQuestion"]} body @param {Options} [options] @returns {Answer<"PublishedFunctionDerivatives">} */
  hvp(body, options) {
    return this.#ask("hvp", body, options);
  }

  /** Output gradients times the Jacobian. @param {Schemas["PublishedVjpQuestion"]} body @param {Options} [options] @returns {Answer<"PublishedFunctionDerivatives">} */
  vjp(body, options) {
    return this.#ask("vjp", body, options);
  }

  /** The Jacobian times tangents. @param {Schemas["PublishedJvpQuestion"]} body @param {Options} [options] @returns {Answer<"PublishedFunctionTangents">} */
  jvp(body, options) {
    return this.#ask("jvp", body, options);
  }

  /** Compares the gradients with finite differences. @param {Schemas["PublishedCheckQuestion"]} body @param {Options} [options] @returns {Answer<"PublishedCheckReport">} */
  check(body, options) {
    return this.#ask("check", body, options);
  }

  /** Deletes the name with all its versions. @param {Options} [options] @returns {Promise<null>} */
  delete(options) {
    return this.server.request("DELETE", this.path, undefined, options);
  }

  /**
   * @param {string} question
   * @param {unknown} body
   * @param {Options} [options]
   * @returns {Promise<any>}
   */
  #ask(question, body, options) {
    return this.server.request("POST", `${this.path}/${question}?full=true`, body, options);
  }
}
