// The session of the page, and what is sent to it: each change of a slider is one batch, which may use what is there.

import { apiKey, events, ProblemError, request } from "../shared/api.js";

const GONE = new Set(["unknown_session", "session_ended"]);

let session = null; // the id, or the promise of it

async function start() {
  session ??= request("POST", "v1/sessions", {}).then((facts) => facts.id);
  try {
    return await session;
  } catch (error) {
    session = null;
    throw error;
  }
}

/** Creates the session before it is needed: that takes longer than an answer. */
export const prepare = () => void start().catch(() => {}); // the first request reports what is wrong

/** Ends the page's session; also when the page is left. */
export function end() {
  if (session === null) return;
  const ending = session;
  session = null;
  Promise.resolve(ending).then((id) => {
    const key = apiKey();
    fetch(`v1/sessions/${id}`, { method: "DELETE", keepalive: true, headers: key ? { Authorization: `Bearer ${key}` } : {} });
  }, () => {});
}

/** The function that a text means: {inputs, values, steps, outputs}. */
export const parse = (text, signal) => request("POST", "v1/expressions", { text }, { signal });

/** Publishes a function under a name. */
export const publish = (name, body) => request("PUT", `v1/published/${encodeURIComponent(name)}`, body);

/** The catalogue of ops. */
export const catalogue = () => request("GET", "v1/ops");

/** Calls `work` with the session's path, once more if the session has ended. */
async function inSession(work) {
  for (let attempt = 0; ; attempt += 1) {
    const id = await start();
    try {
      return await work(`v1/sessions/${id}`);
    } catch (error) {
      if (!GONE.has(error.code) || attempt > 0) throw error;
      session = null;
    }
  }
}

/**
 * Runs commands, and forgets everything that they make.
 *
 * @param {object[]} commands
 * @param {string[]} temporaries - the ids that they make.
 * @param {{signal?: AbortSignal, onProgress?: (progress: object) => void, replace?: boolean}} [options] - replace: ids may
 *   be those of things that are there.
 * @returns the answer of a batch: results, failure, compute_seconds.
 */
export const batch = (commands, temporaries, { signal, onProgress, replace } = {}) =>
  inSession(async (path) => {
    const body = { commands, temporaries, on_failure: "rollback", ...(replace ? { replace } : {}) };
    if (!onProgress) return request("POST", `${path}/batch`, body, { signal });
    for await (const event of events("POST", `${path}/batch`, body, { signal })) {
      if (event.event === "answer") return event.data;
      if (event.event === "problem") throw new ProblemError(event.data);
      onProgress(event.data);
    }
    throw new ProblemError({ code: "no_answer", status: 0, detail: "The answer ended early." });
  });

/** Sends a request below the session's path. */
export const post = (place, body, options) => inSession((path) => request("POST", `${path}/${place}`, body, options));

/** Cancels what runs in the session. */
export const cancel = () => inSession((path) => request("POST", `${path}/cancel`, {}));
