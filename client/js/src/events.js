/** Server-Sent Events over fetch: EventSource can send neither a key nor a body. */

import { whole } from "./problem.js";

/**
 * Yields the events of an answer, with their data parsed.
 *
 * @param {Response} response - of the type text/event-stream.
 * @returns {AsyncGenerator<{event: string, id: string | null, data: any}>}
 * @throws {import("./problem.js").ProblemError} The connection breaks off ("no_answer").
 */
export async function* eventsOf(response) {
  if (!response.body) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let pending = "";
  try {
    for (;;) {
      const { value, done } = await whole(reader.read());
      if (done) return;
      pending += decoder.decode(value, { stream: true });
      const blocks = pending.split("\n\n");
      pending = blocks.pop() ?? "";
      for (const block of blocks) {
        const fields = Object.fromEntries(
          block.split("\n").flatMap((line) => {
            const colon = line.indexOf(":");
            return colon > 0 ? [[line.slice(0, colon), line.slice(colon + 1).trimStart()]] : [];
          }),
        );
        if (fields.data) yield { event: fields.event ?? "message", id: fields.id ?? null, data: JSON.parse(fields.data) };
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
