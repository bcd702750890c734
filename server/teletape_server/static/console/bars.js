// Limits as bars: what is used of each, and when it frees.

import { bytes, computed, count, duration, make, meter, number } from "./elements.js";

const WARNED = 0.8; // of a limit, as the server's

const SECONDS = { unit: "h", size: 3600, of: computed };
const GIB_HOURS = { unit: "GiB-hours", size: 1, of: (value) => `${number(value)} GiB-h` };
const GIB = { unit: "GiB", size: 2 ** 30, of: bytes };

/** The limits by name: what they limit, and how a value is written; `size` of what a form takes is one of the limit. */
export const LIMITS = {
  sessions: { label: "Sessions", unit: "", size: 1, of: count },
  memory_bytes: { label: "Memory", ...GIB },
  disk_bytes: { label: "Disk", ...GIB },
  requests_per_second: { label: "Requests a second", unit: "", size: 1, of: number },
  compute_seconds_1d: { label: "Computing in 1 day", ...SECONDS },
  compute_seconds_7d: { label: "Computing in 7 days", ...SECONDS },
  compute_seconds_30d: { label: "Computing in 30 days", ...SECONDS },
  gib_hours_1d: { label: "Memory over 1 day", ...GIB_HOURS },
  gib_hours_7d: { label: "Memory over 7 days", ...GIB_HOURS },
  gib_hours_30d: { label: "Memory over 30 days", ...GIB_HOURS },
};

export const part = ({ used, limit }) => (used === null ? 0 : limit ? used / limit : 1);

/** The limit of which most is used; null: none is counted up. */
export const fullest = (limits) => limits.filter(({ used }) => used !== null).sort((a, b) => part(b) - part(a))[0] ?? null;

/** A limit as text, such as `1.2 of 10 h`. */
export function limitText({ name, used, limit }) {
  const { of } = LIMITS[name];
  return used === null ? `at most ${of(limit)}` : `${of(used)} of ${of(limit)}`;
}

/**
 * A limit as a bar.
 *
 * @param {{account: string, name: string, used: number | null, limit: number, frees_at: string | null}} state
 * @param {string} account - the one that is looked at: the limit of another one, its group, says so.
 */
export function limitBar(state, account) {
  const { label } = LIMITS[state.name];
  const [of, text] = [state.account === account ? "" : ` of ${state.account}`, limitText(state)];
  const frees = state.frees_at ? `, less in ${duration(Date.parse(state.frees_at) - Date.now())}` : "";
  const bar = meter(`${label}${of}`);
  bar.set(part(state), `${text}${frees}`);
  bar.bar.classList.toggle("warned", part(state) >= WARNED && part(state) < 1);
  bar.bar.classList.toggle("high", part(state) >= 1);
  const line = make("span", { class: "line" }, make("span", {}, label, of ? make("span", { class: "soft" }, of) : null), make("span", { class: part(state) >= 1 ? "bad" : "soft" }, `${text}${frees}`));
  return make("li", { "data-limit": state.name }, line, state.used === null ? null : bar.bar);
}

/** All limits as bars. */
export const limitBars = (limits, account) => make("ul", { class: "bars" }, ...limits.map((state) => limitBar(state, account)));
