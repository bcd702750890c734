/** The connection to a server: typed requests, events, and the start of sessions. */

import { eventsOf } from "./events.js";
import { ProblemError, problemOf, secondsOf, whole } from "./problem.js";
import { PublishedFunction } from "./published.js";
import { GATEWAY, LONGEST_WAIT, Retries, eitherOf, passed, unlessAborted } from "./retries.js";
import { Session } from "./session.js";
import { withTensors } from "./tensor.js";

/**
 * @typedef {import("./types.d.ts").Schemas} Schemas
 * @typedef {import("./types.d.ts").Options} Options
 * @typedef {import("./types.d.ts").WhenLost} WhenLost
 */

/**
 * @typedef {{body?: unknown, headers?: Record<string, string>, signal?: AbortSignal, timeout?: number,
 *   home?: Session | undefined}} Call - `body`: bytes as they are, anything else as JSON; `home`: the session that the
 *   request needs, which is made again if it was lost.
 */

/** Milliseconds for which nothing may answer at the address of a request that the server computes. */
const PATIENCE = 60_000;

/** The address of a request that the server computes, whatever is before its path: its answer is waited for there. */
const ADDRESS = /\/v1\/requests\/[A-Za-z0-9_-]+$/;

/** A server. */
export class Teletape {
  /** Whether the server has answered: only then is it asked again if nothing answers. */
  #isKnown = false;

  /**
   * @param {string} [address] - such as "http://127.0.0.1:8470"; in a page of the server itself it can be left out.
   * @param {{apiKey?: string, fetch?: typeof fetch, timeout?: number, retries?: number, patience?: number}} [options] -
   *   `fetch` replaces the one of the platform.
   *   `timeout`: milliseconds after which a request fails, unless it has its own; none by default.
   *   `retries`: how often a request is sent again, 3 by default. It is sent again if a busy server refuses it (429, 503
   *   or 507 with Retry-After), and if nothing answers a GET or a request with an idempotency key.
   *   `patience`: milliseconds for which nothing may answer while the server computes a request, 60,000 by default.
   */
  constructor(
    address = globalThis.location?.origin,
    { apiKey, fetch: send, timeout, retries = 3, patience = PATIENCE } = {},
  ) {
    if (!address) throw new TypeError("the address of the server is missing, such as http://127.0.0.1:8470");
    this.address = address.replace(/\/+$/, "");
    this.apiKey = apiKey;
    this.timeout = timeout;
    this.retries = retries;
    this.patience = patience;
    this.send = send ?? globalThis.fetch.bind(globalThis);
  }

  /**
   * Sends a request until it is answered, and returns the server's response. If the server answers that it computes
   * (202), the answer is waited for at the address that the server names, and the request is not sent again.
   *
   * @template [T=Response]
   * @param {string} method - GET, POST, PUT or DELETE.
   * @param {string} path - such as "/v1/run", with a query if there is one. With a `home` it begins there.
   * @param {Call} [options]
   * @param {(response: Response) => T | Promise<T>} [read] - reads the response, in the time that the request has.
   * @returns {Promise<T>}
   * @throws {ProblemError} The server refused the request, does not answer (code "no_answer"), or not in time
   *   ("timeout").
   */
  async response(method, path, options = {}, read = (response) => /** @type {T} */ (/** @type {unknown} */ (response))) {
    const { headers = {}, signal, timeout = this.timeout, home } = options;
    const limit = timeout === undefined ? undefined : AbortSignal.timeout(timeout);
    const ends = eitherOf(signal, limit);
    const sent = this.#request(method, options, ends);
    const waiting = this.#request("GET", { headers: headers.Accept ? { Accept: headers.Accept } : {} }, ends);
    const retries = new Retries(this);
    /** @type {string | undefined} */
    let address; // where the answer is waited for
    let hasLost = false; // the session, once
    try {
      for (;;) {
        if (home) await unlessAborted(home.isThere(), ends);
        const turn = home?.turn;
        try {
          const response = await this.#sent(address ?? (home?.path ?? "") + path, address ? waiting : sent);
          const seconds = secondsOf(response);
          if (response.status === 202 && seconds !== null) {
            const before = address;
            address = ADDRESS.exec(response.headers.get("Location") ?? "")?.[0] ?? before;
            retries.clear();
            await response.body?.cancel();
            if (address === before) await passed(1000 * Math.min(seconds, LONGEST_WAIT), ends);
          } else if (address && response.status === 404) {
            address = undefined; // the answer is forgotten, or the server was started again
            await response.body?.cancel();
          } else if (response.ok) {
            return await read(response);
          } else {
            throw await problemOf(response, this.address);
          }
        } catch (error) {
          if (!(error instanceof ProblemError)) throw error;
          ends?.throwIfAborted();
          if (hasLost || !home?.isLost(error)) {
            const isRepeatable = this.#isKnown && (method === "GET" || "Idempotency-Key" in headers);
            await passed(retries.wait(error, { isComputed: address !== undefined, isRepeatable }), ends);
          } else {
            hasLost = true;
            address = undefined;
            await unlessAborted(home.restored(error, turn), ends);
          }
        }
      }
    } catch (error) {
      if (!limit?.aborted || error !== limit.reason) throw error;
      const detail = `${this.address} has not answered within ${timeout} ms`;
      throw new ProblemError({ code: "timeout", status: 0, detail }, { cause: error });
    }
  }

  /**
   * Returns a request as `fetch` takes it.
   *
   * @param {string} method
   * @param {Call} options
   * @param {AbortSignal | undefined} signal
   * @returns {RequestInit}
   */
  #request(method, { body, headers }, signal) {
    const isBinary = ArrayBuffer.isView(body) || body instanceof ArrayBuffer || body instanceof Blob;
    const type = isBinary ? "application/octet-stream" : "application/json";
    return {
      method,
      headers: {
        Accept: "application/json",
        ...(this.apiKey ? { Authorization: `Bearer ${this.apiKey}` } : {}),
        ...(body === undefined ? {} : { "Content-Type": type }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isBinary ? /** @type {BodyInit} */ (body) : JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
    };
  }

  /**
   * Sends a request once.
   *
   * @param {string} path
   * @param {RequestInit} request
   * @returns {Promise<Response>}
   */
  async #sent(path, request) {
    try {
      const response = await this.send(this.address + path, request);
      this.#isKnown ||= !GATEWAY.includes(response.status);
      return response;
    } catch (cause) {
      const detail = `nothing answers at ${this.address}: is the server running, and is this page's origin allowed?`;
      throw new ProblemError({ code: "no_answer", status: 0, detail }, { cause });
    }
  }

  /**
   * Sends a request and returns the answer's JSON, with tensors in place of {dtype, shape, data}.
   *
   * @param {string} method
   * @param {string} path
   * @param {unknown} [body]
   * @param {Options & {home?: Session | undefined}} [options]
   * @returns {Promise<any>} null for an answer without a body.
   * @throws {ProblemError} The server refused the request, or does not answer.
   */
  request(method, path, body, { onProgress, idempotencyKey, ...rest } = {}) {
    /** @type {Record<string, string>} */
    const headers = { ...(idempotencyKey ? { "Idempotency-Key": idempotencyKey } : {}) };
    if (onProgress) headers.Accept = "text/event-stream";
    return this.response(method, path, { body, headers, ...rest }, async (response) => {
      if (response.status === 204) return null;
      if (!onProgress) return withTensors(await whole(response.json()));
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
   * @param {Options & {whenLost?: WhenLost}} [options] - `whenLost`: makes again what the program needs in a session, see
   *   `Session`.
   */
  async session(body = {}, { whenLost, ...options } = {}) {
    const facts = await this.request("POST", "/v1/sessions", body, options);
    return new Session(this, facts.id, { facts, body, whenLost });
  }

  /**
   * Returns the session that has this id, as one that another program has made. No request is sent.
   *
   * @param {string} id
   * @param {{whenLost?: WhenLost}} [options] - `whenLost`: makes what the program needs in a session, if there is none.
   */
  existingSession(id, { whenLost } = {}) {
    return new Session(this, id, { whenLost });
  }

  /** Returns the published function of this name, or of "name@version". No request is sent. @param {string} name */
  published(name) {
    return new PublishedFunction(this, name);
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
