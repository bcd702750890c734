/** The refusals of a server. */

/** Thrown if the server refuses a request (RFC 9457), or does not answer. */
export class ProblemError extends Error {
  /**
   * @param {{code?: string, status?: number, title?: string, detail?: string, type?: string, instance?: string,
   *   details?: Record<string, unknown>, retryAfter?: number | null}} problem - the body of the answer.
   * @param {{cause?: unknown}} [options] - the error of the network, if there is one.
   */
  constructor(problem, options) {
    super(problem.detail || problem.title || "the request failed", options);
    this.name = "ProblemError";
    /** For programs; "no_answer" if there was no answer. */
    this.code = problem.code ?? "unknown";
    /** The HTTP status; 0 without an answer. */
    this.status = problem.status ?? 0;
    /** Numbers and names that a program may act on. */
    this.details = problem.details ?? {};
    /** The address of a page on the server that explains the code. */
    this.type = problem.type ?? "";
    /** Names the request in the server's log. */
    this.instance = problem.instance ?? "";
    /** The seconds after which the server wants the request again; null if it names none. */
    this.retryAfter = problem.retryAfter ?? null;
  }
}

/**
 * Returns the refusal that an answer is.
 *
 * @param {Response} response - with a status of 400 or more.
 * @param {string} address - the server's, to which `type` is relative.
 */
export async function problemOf(response, address) {
  const text = await whole(response.text());
  const retryAfter = secondsOf(response);
  try {
    const problem = JSON.parse(text);
    const type = problem.type ? new URL(problem.type, address).href : "";
    return new ProblemError({ status: response.status, ...problem, type, retryAfter });
  } catch {
    const detail = text.slice(0, 300) || response.statusText;
    return new ProblemError({ status: response.status, detail, retryAfter });
  }
}

/** Returns the seconds that a response names in Retry-After; null without one. @param {Response} response */
export function secondsOf(response) {
  const named = response.headers.get("Retry-After");
  if (named === null) return null;
  return /^[0-9]{1,9}(\.[0-9]+)?$/.test(named) ? Number(named) : 1;
}

/**
 * Returns a part of an answer that is being read.
 *
 * @template T
 * @param {Promise<T>} reading
 * @returns {Promise<T>}
 * @throws {ProblemError} The answer breaks off ("no_answer").
 */
export async function whole(reading) {
  try {
    return await reading;
  } catch (cause) {
    throw new ProblemError({ code: "no_answer", detail: "the connection ended before the answer was complete" }, { cause });
  }
}
