/** When a request is sent again, and how long it waits until then. */

import { ProblemError } from "./problem.js";

/** Milliseconds between two attempts, at most, whatever the server names in Retry-After. */
export const LONGEST_WAIT = 10_000;

/** Refusals of a server that is busy, if they name a time. */
const BUSY = [429, 503, 507];

/** Statuses of something before the server that does not reach it. */
export const GATEWAY = [502, 503, 504];

/** The failures of one request in a row. */
export class Retries {
  failures = 0;
  since = Infinity;

  /** @param {{retries: number, patience: number}} limits - the client's. */
  constructor({ retries, patience }) {
    this.retries = retries;
    this.patience = patience;
  }

  /** Forgets the failures: the server has answered. */
  clear() {
    this.failures = 0;
    this.since = Infinity;
  }

  /**
   * Returns the milliseconds after which a request that failed is sent again.
   *
   * @param {ProblemError} problem - the failure.
   * @param {{isComputed: boolean, isRepeatable: boolean}} request - `isComputed`: the server computes it, and is only
   *   asked for the answer; `isRepeatable`: sending it twice does the same as sending it once.
   * @returns {number}
   * @throws {ProblemError} The problem itself: the request is not sent again.
   */
  wait(problem, { isComputed, isRepeatable }) {
    const { code, status, retryAfter } = problem;
    const isUnanswered = code === "no_answer" || (GATEWAY.includes(status) && retryAfter === null);
    const isBusy = retryAfter !== null && BUSY.includes(status);
    const wait = retryAfter === null ? 100 * 2 ** this.failures * (0.5 + Math.random()) : 1000 * retryAfter;
    const bounded = Math.min(wait, LONGEST_WAIT);
    this.since = Math.min(this.since, Date.now());
    const isPatient = isComputed ? Date.now() + bounded < this.since + this.patience : this.failures < this.retries;
    if (!isPatient || !(isBusy || (isUnanswered && (isComputed || isRepeatable)))) throw problem;
    this.failures += 1;
    return bounded;
  }
}

/**
 * Waits, and throws the signal's reason if it is aborted.
 *
 * @param {number} milliseconds
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<void>}
 */
export async function passed(milliseconds, signal) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  try {
    await unlessAborted(new Promise((resolve) => (timer = setTimeout(resolve, milliseconds))), signal);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Waits for a promise, and throws the signal's reason if it is aborted before.
 *
 * @template T
 * @param {Promise<T>} promise
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<T>}
 */
export async function unlessAborted(promise, signal) {
  if (!signal) return promise;
  signal.throwIfAborted();
  /** @type {() => void} */
  let abort = () => {};
  const aborted = new Promise((_, reject) => {
    abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
  });
  try {
    return await Promise.race([promise, /** @type {Promise<never>} */ (aborted)]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/**
 * Returns a signal that is aborted with the first of two.
 *
 * @param {AbortSignal | undefined} first
 * @param {AbortSignal | undefined} second
 */
export function eitherOf(first, second) {
  if (!first || !second) return first ?? second;
  const either = new AbortController(); // AbortSignal.any is younger than Node 18
  for (const signal of [first, second]) {
    if (signal.aborted) either.abort(signal.reason);
    signal.addEventListener("abort", () => either.abort(signal.reason), { once: true });
  }
  return either.signal;
}
