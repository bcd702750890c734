// What the page itself reads of the chosen session. While that lasts, the session is not shown as computing.

import { request } from "../shared/api.js";
import { count } from "./elements.js";

const RATE_WINDOW = 10_000; // milliseconds over which requests a second are counted

let pending = 0;
let answered = 0;

/** The number of reads that are not answered yet. */
export const pendingReads = () => pending;

/** Reads a resource of the chosen session. */
export async function read(path, signal) {
  pending += 1;
  try {
    return await request("GET", path, undefined, { signal });
  } finally {
    pending -= 1;
    answered += 1;
  }
}

/** A session's requests in words, with those of others a second: what the page itself reads is no part of that. */
export class Rate {
  constructor() {
    this.samples = []; // [milliseconds, requests] of the last RATE_WINDOW
  }

  of(requests) {
    const now = performance.now();
    const others = requests - answered;
    this.samples.push([now, others]);
    while (now - this.samples[0][0] > RATE_WINDOW) this.samples.shift();
    const [[since, before]] = this.samples;
    const seconds = (now - since) / 1000;
    return seconds < 1 ? count(requests) : `${count(requests)}, ${Math.max(0, (others - before) / seconds).toFixed(1)}/s`;
  }
}
