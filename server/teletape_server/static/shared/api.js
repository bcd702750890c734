// The server's API, as the pages call it: JSON requests, problems as errors, events of long requests, the API key.

const KEY = "teletape-api-key";

/** A refusal of the server (RFC 9457): `code`, `status`, `details`; the message is the problem's detail. */
export class ProblemError extends Error {
  constructor(problem) {
    super(problem.detail || problem.title || "The request failed");
    this.name = "ProblemError";
    Object.assign(this, { code: problem.code, status: problem.status, details: problem.details ?? {}, type: problem.type });
  }
}

/** Returns the API key of this tab; "" if there is none. */
export const apiKey = () => sessionStorage.getItem(KEY) ?? "";

/** Keeps an API key until the tab is closed; "" removes it. */
export function setApiKey(key) {
  if (key) sessionStorage.setItem(KEY, key);
  else sessionStorage.removeItem(KEY);
}

function headers(extra) {
  const key = apiKey();
  return { ...(key ? { Authorization: `Bearer ${key}` } : {}), ...extra };
}

async function send(method, path, body, { accept = "application/json", signal } = {}) {
  const response = await fetch(path, {
    method,
    signal,
    headers: headers({ Accept: accept, ...(body === undefined ? {} : { "Content-Type": "application/json" }) }),
    body: body === undefined ? undefined : JSON.stringify(body),
  }).catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new ProblemError({ code: "no_answer", status: 0, detail: "The server does not answer. Is it running?" });
  });
  if (response.ok) return response;
  const text = await response.text();
  let problem;
  try {
    problem = JSON.parse(text);
  } catch {
    problem = { status: response.status, detail: text.slice(0, 300) || response.statusText };
  }
  throw new ProblemError(problem);
}

/**
 * Sends a request and returns the answer's JSON; null for an answer without a body.
 *
 * @param {string} method - GET, POST, PUT or DELETE.
 * @param {string} path - relative to the page, such as "v1/run".
 * @param {unknown} [body] - sent as JSON.
 * @param {{signal?: AbortSignal}} [options]
 * @throws {ProblemError} The server refused the request, or does not answer (code no_answer).
 */
export async function request(method, path, body, options) {
  const response = await send(method, path, body, options);
  return response.status === 204 ? null : response.json();
}

/**
 * Yields the events of a request: {event, id, data}, with data parsed. EventSource cannot send a key or a body.
 *
 * @param {string} method - GET or POST.
 * @param {string} path - relative to the page.
 * @param {unknown} [body] - sent as JSON.
 * @param {{signal?: AbortSignal}} [options] - the signal ends the stream.
 * @throws {ProblemError} The server refused the request before the first event.
 */
export async function* events(method, path, body, options = {}) {
  const response = await send(method, path, body, { ...options, accept: "text/event-stream" });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let pending = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      pending += value;
      const blocks = pending.split("\n\n");
      pending = blocks.pop();
      for (const block of blocks) {
        const event = { event: "message", id: null, data: "" };
        for (const line of block.split("\n")) {
          const colon = line.indexOf(":");
          if (colon > 0) event[line.slice(0, colon)] = line.slice(colon + 1).trimStart();
        }
        if (event.data) yield { ...event, data: JSON.parse(event.data) };
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
