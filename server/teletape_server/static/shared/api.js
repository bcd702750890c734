// The server's API, as the pages call it: JSON requests, problems as errors, events of long requests, the API key.
// What the JavaScript client has too, comes from it: the server gives it to pages at /static/client.

import { eventsOf } from "../client/events.js";
import { ProblemError, problemOf } from "../client/problem.js";

const KEY = "teletape-api-key";

export { ProblemError };

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
  if (!response.ok) throw await problemOf(response, document.baseURI);
  return response;
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
  yield* eventsOf(await send(method, path, body, { ...options, accept: "text/event-stream" }));
}
