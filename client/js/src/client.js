/** The connection to a server: typed requests, events, and the start of sessions. */

import { eventsOf } from "./events.js";
import { ProblemError, problemOf } from "./problem.js";
import { Session } from "./session.js";
import { withTensors } from "./tensor.js";

/**
 * @typedef {import("./types.d.ts").Schemas} Schemas
 * @typedef {import("./types.d.ts").Options} Options
 */

/** A server. */
export class Teletape {
  /**
   * @param {string} [address] - such as "http://127.0.0.1:8470"; in a page of the server itself it can be left out.
   * @param {{apiKey?: string, fetch?: typeof fetch}} [options] - `fetch` replaces the one of the platform.
   */
  constructor(address = globalThis.location?.origin, { apiKey, fetch: send } = {}) {
    if (!address) throw new TypeError("the address of the server is missing, such as http://127.0.0.1:8470");
    this.address = address.replace(/\/+$/, "");
    this.apiKey = apiKey;
    this.send = send ?? globalThis.fetch.bind(globalThis);
  }

  /**
   * Sends a request and returns the server's response.
   *
   * @param {string} method - GET, POST, PUT or DELETE.
   * @param {string} path - such as "/v1/run", with a query if there is one.
   * @param {{body?: unknown, headers?: Record<string, string>, signal?: AbortSignal}} [options] - `body`: bytes as they
   *   are, anything else as JSON.
   * @throws {ProblemError} The server refused the request, or does not answer (code "no_answer").
   */
  async response(method, path, { body, headers = {}, signal } = {}) {
    const isBinary = ArrayBuffer.isView(body) || body instanceof ArrayBuffer || body instanceof Blob;
    const type = isBinary ? "application/octet-stream" : "application/json";
    let response;
    try {
      response = await this.send(this.address + path, {
        method,
        headers: {
          Accept: "application/json",
          ...(body === undefined ? {} : { "Content-Type": type }),
          ...(this.apiKey ? { Authorization: `Bearer ${this.apiKey}` } : {}),
          ...headers,
        },
        ...(body === undefined ? {} : { body: isBinary ? /** @type {BodyInit} */ (body) : JSON.stringify(body) }),
        ...(signal ? { signal } : {}),
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      const detail = `nothing answers at ${this.address}: is the server running, and is this page's origin allowed?`;
      throw new ProblemError({ code: "no_answer", status: 0, detail }, { cause: error });
    }
    if (!response.ok) throw await problemOf(response, this.address);
    return response;
  }

  /**
   * Sends a request and returns the answer's JSON, with tensors in place of {dtype, shape, data}.
   *
   * @param {string} method
   * @param {string} path
   * @param {unknown} [body]
   * @param {Options} [options]
   * @returns {Promise<any>} null for an answer without a body.
   * @throws {ProblemError} The server refused the request, or does not answer.
   */
  async request(method, path, body, { onProgress, idempotencyKey, signal } = {}) {
    /** @type {Record<string, string>} */
    const headers = { ...(idempotencyKey ? { "Idempotency-Key": idempotencyKey } : {}) };
    if (onProgress) headers.Accept = "text/event-stream";
    const response = await this.response(method, path, { body, headers, ...(signal ? { signal } : {}) });
    if (response.status === 204) return null;
    if (!onProgress) return withTensors(await response.json());
    for await (const { event, data } of eventsOf(response)) {
      if (event === "answer") return withTensors(data);
      if (event === "problem") throw new ProblemError(data);
      onProgress(data);
    }
    throw new ProblemError({ code: "no_answer", detail: "the connection ended before the answer came" });
  }

  /**
   * Runs commands once: nothing stays on the server.
   *
   * @param {Schemas["Run"]} body - `commands`, and in `fetch` the ids whose values are returned.
   * @param {Options} [options]
   * @returns {import("./types.d.ts").Answer<"RunAnswer">} with a `Tensor` for each value, and in `why` the reason of each null.
   */
  run(body, options) {
    return this.request("POST", "/v1/run?full=true", body, options);
  }

  /**
   * Creates a session, or returns the one that has this id.
   *
   * @param {Schemas["NewSession"]} [body] - `id`, `replace`, `device`, `memory_limit`.
   * @param {Options} [options]
   */
  async session(body = {}, options) {
    const facts = await this.request("POST", "/v1/sessions", body, options);
    return new Session(this, facts.id, facts);
  }

  /** Returns the versions, limits and features of the server. @returns {import("./types.d.ts").Answer<"Info">} */
  info() {
    return this.request("GET", "/v1/info");
  }
}
