/** The connection to a server: typed requests, events, and the start of sessions. */

import { eventsOf } from "./events.js";
import { ProblemError, problemOf } from "./problem.js";
import { Session } from "./session.js";
import { withTensors } from "./tensor.js";

/**
 * @typedef {import("./types.d.ts").Schemas} Schemas
 * @typedef {import("./types.d.ts").Options} Options
 */

/** Milliseconds between two attempts, at most, whatever the server names in Retry-After. */
const LONGEST_WAIT = 10_000;

/** The address of a request that runs, whatever is before its path: there its answer is waited for. */
const ADDRESS = /\/v1\/requests\/[A-Za-z0-9_-]+$/;

/** A server. */
export class Teletape {
  /**
   * @param {string} [address] - such as "http://127.0.0.1:8470"; in a page of the server itself it can be left out.
   * @param {{apiKey?: string, fetch?: typeof fetch, timeout?: number, retries?: number}} [options] - `fetch` replaces the
   *   one of the platform; `timeout`: milliseconds after which a request fails, unless it has its own, none by default;
   *   `retries`: how often a request that a busy server refuses (429, 503 with Retry-After) is sent again, 3 by default.
   */
  constructor(address = globalThis.location?.origin, { apiKey, fetch: send, timeout, retries = 3 } = {}) {
    if (!address) throw new TypeError("the address of the server is missing, such as http://127.0.0.1:8470");
    this.address = address.replace(/\/+$/, "");
    this.apiKey = apiKey;
    this.timeout = timeout;
    this.retries = retries;
    this.send = send ?? globalThis.fetch.bind(globalThis);
  }

  /**
   * Sends a request and returns the server's response. The answer to a request that the server still computes (202) is
   * waited for at the address that the server names, without sending the request again. One that a busy server refuses
   * is sent again, a few times.
   *
   * @param {string} method - GET, POST, PUT or DELETE.
   * @param {string} path - such as "/v1/run", with a query if there is one.
   * @param {{body?: unknown, headers?: Record<string, string>, signal?: AbortSignal, timeout?: number}} [options] -
   *   `body`: bytes as they are, anything else as JSON.
   * @throws {ProblemError} The server refused the request, does not answer (code "no_answer"), or not in time
   *   ("timeout").
   */
  response(method, path, options = {}) {
    return this.#answered(method, path, options, (response) => response);
  }

  /**
   * Sends a request until it is answered, and reads the answer; all in the time that it has.
   *
   * @template T
   * @param {string} method
   * @param {string} path
   * @param {{body?: unknown, headers?: Record<string, string>, signal?: AbortSignal, timeout?: number}} options
   * @param {(response: Response) => T | Promise<T>} read
   * @returns {Promise<T>}
   */
  async #answered(method, path, { body, headers = {}, signal, timeout = this.timeout }, read) {
    const isBinary = ArrayBuffer.isView(body) || body instanceof ArrayBuffer || body instanceof Blob;
    const type = isBinary ? "application/octet-stream" : "application/json";
    const limit = timeout === undefined ? undefined : AbortSignal.timeout(timeout);
    const ends = eitherOf(signal, limit);
    const common = {
      Accept: "application/json",
      ...(this.apiKey ? { Authorization: `Bearer ${this.apiKey}` } : {}),
    };
    const signals = ends ? { signal: ends } : {};
    const request = {
      method,
      headers: { ...common, ...(body === undefined ? {} : { "Content-Type": type }), ...headers },
      ...(body === undefined ? {} : { body: isBinary ? /** @type {BodyInit} */ (body) : JSON.stringify(body) }),
      ...signals,
    };
    const accepted = headers.Accept ? { Accept: headers.Accept } : {};
    const waiting = { method: "GET", headers: { ...common, ...accepted }, ...signals };
    /** @type {string | undefined} */
    let address;
    let reads = false;
    try {
      for (let refusals = 0; ; ) {
        const response = await this.send(this.address + (address ?? path), address ? waiting : request);
        const isBusy = response.status === 429 || response.status === 503;
        const asks = response.headers.has("Retry-After");
        if (address && response.status === 404) {
          address = undefined; // the answer is forgotten, or the server was started again
          await response.body?.cancel();
        } else if (asks && (response.status === 202 || (isBusy && refusals < this.retries))) {
          const named = response.status === 202 ? ADDRESS.exec(response.headers.get("Location") ?? "")?.[0] : address;
          const isNew = named !== undefined && named !== address;
          address = named ?? address;
          refusals += isBusy ? 1 : 0;
          await response.body?.cancel();
          if (!isNew) await passed(waitOf(response), ends);
        } else if (response.ok) {
          reads = true;
          return await read(response);
        } else {
          throw await problemOf(response, this.address);
        }
      }
    } catch (error) {
      if (error instanceof ProblemError || signal?.aborted) throw error;
      if (limit?.aborted) {
        const detail = `${this.address} has not answered within ${timeout} ms`;
        throw new ProblemError({ code: "timeout", status: 0, detail }, { cause: error });
      }
      if (reads) throw error;
      const detail = `nothing answers at ${this.address}: is the server running, and is this page's origin allowed?`;
      throw new ProblemError({ code: "no_answer", status: 0, detail }, { cause: error });
    }
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
  async request(method, path, body, { onProgress, idempotencyKey, ...ends } = {}) {
    /** @type {Record<string, string>} */
    const headers = { ...(idempotencyKey ? { "Idempotency-Key": idempotencyKey } : {}) };
    if (onProgress) headers.Accept = "text/event-stream";
    return this.#answered(method, path, { body, headers, ...ends }, async (response) => {
      if (response.status === 204) return null;
      if (!onProgress) return withTensors(await response.json());
      for await (const { event, data } of eventsOf(response)) {
        if (event === "answer") return withTensors(data);
        if (event === "problem") throw new ProblemError(data);
        onProgress(data);
      }
      throw new ProblemError({ code: "no_answer", detail: "the connection ended before the answer came" });
    });
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

  /** Returns the session that has this id, as one that another program has made. No request is sent. @param {string} id */
  existingSession(id) {
    return new Session(this, id);
  }

  /** Parses formulas, and returns the steps of a function. @param {Schemas["ExpressionText"]} body @param {Options} [options] @returns {import("./types.d.ts").Answer<"Expression">} */
  expressions(body, options) {
    return this.request("POST", "/v1/expressions", body, options);
  }

  /** Returns the versions, limits and features of the server. @returns {import("./types.d.ts").Answer<"Info">} */
  info() {
    return this.request("GET", "/v1/info");
  }
}

/** Returns the milliseconds that a response asks to wait, at most `LONGEST_WAIT`. @param {Response} response */
function waitOf(response) {
  const named = response.headers.get("Retry-After") ?? "";
  return Math.min(/^[0-9]+(\.[0-9]+)?$/.test(named) ? 1000 * Number(named) : 1000, LONGEST_WAIT);
}

/**
 * Waits, and throws the signal's reason if it is aborted.
 *
 * @param {number} milliseconds
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<void>}
 */
function passed(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, milliseconds);
    if (signal?.aborted) abort();
    else signal?.addEventListener("abort", abort, { once: true });
  });
}

/**
 * Returns a signal that is aborted with the first of two.
 *
 * @param {AbortSignal | undefined} first
 * @param {AbortSignal | undefined} second
 */
function eitherOf(first, second) {
  if (!first || !second) return first ?? second;
  const either = new AbortController(); // AbortSignal.any is younger than Node 18
  for (const signal of [first, second]) {
    if (signal.aborted) either.abort(signal.reason);
    signal.addEventListener("abort", () => either.abort(signal.reason), { once: true });
  }
  return either.signal;
}
