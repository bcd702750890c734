// What the page itself reads of the chosen session. While that lasts, the session is not shown as computing.

import { request } from "../shared/api.js";

let pending = 0;

/** The number of reads that are not answered yet. */
export const pendingReads = () => pending;

/** Reads a resource of the chosen session. */
export async function read(path, signal) {
  pending += 1;
  try {
    return await request("GET", path, undefined, { signal });
  } finally {
    pending -= 1;
  }
}
