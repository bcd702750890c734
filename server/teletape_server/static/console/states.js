// The states of a session in words, and what a reader can do about them.

import { make } from "./elements.js";

/** The texts of states other than live: of the list, and of the session's own part of the page. */
const TEXTS = {
  starting: "Its process starts.",
  parking: "What it has is being written to its files.",
  parked: "It has no process, and what it has is in its files. Its next request wakes it, whoever sends it.",
  waking: "A process starts with what is in its files. Requests wait for it.",
  recovering: "Its process has ended, and another one goes on with it from its files.",
  damaged: "It cannot go on, and requests to it are refused. Its files are as they were.",
  diverged: "It cannot go on, and requests to it are refused: its log gives other values than it gave before. Its files are as they were.",
};

/** Whether only its files are left of a session. */
export const isLost = ({ state }) => state === "damaged" || state === "diverged";

const KINDS = ["running", "idle", "damaged", "diverged", "recovering", "starting", "waking", "parking", "parked"];

/** The state of a session, where live is one of two: running or idle. */
export const kindOf = ({ state, running }) => (state !== "live" ? state : running.requests ? "running" : "idle");

/** How many sessions are in each state, in the order of `KINDS`. */
export function counts(sessions) {
  const numbers = new Map(KINDS.map((kind) => [kind, 0]));
  for (const session of sessions) numbers.set(kindOf(session), (numbers.get(kindOf(session)) ?? 0) + 1);
  return new Map([...numbers].filter(([, number]) => number));
}

/** What is to be said of a session's state: a part of the page, which is hidden while there is nothing. */
export class StateNote {
  /**
   * @param {string} name - of the session, as the command line knows it.
   * @param {() => void} wake - wakes the session.
   */
  constructor(name, wake) {
    this.name = name;
    this.wake = make("button", { type: "button", click: wake }, "Wake it");
    this.element = make("div", { class: "note hidden", role: "status" });
    this.shown = "";
  }

  update(facts) {
    const shown = `${facts.state} ${facts.why}`;
    if (shown === this.shown) return;
    this.shown = shown;
    const { state, why } = facts;
    this.element.classList.toggle("hidden", state === "live" && !why);
    this.element.dataset.state = state === "live" ? "refuses" : state;
    this.element.replaceChildren(
      make("p", {}, make("b", {}, state === "live" ? "takes no changes" : state), ` ${TEXTS[state] ?? ""}`),
      ...(why ? [make("p", { class: "why" }, why)] : []),
      ...(state === "parked" ? [this.wake] : []),
      ...(isLost(facts) ? this.remedies() : []),
    );
  }

  remedies() {
    return [
      make("p", {}, "Whoever runs the server can save its last good values:"),
      make("pre", {}, `teletape sessions rescue ${this.name} --data-dir PATH --out DIR`),
      make("p", {}, make("a", { href: "guide/operate#a-damaged-session" }, "What to do with a damaged session")),
    ];
  }
}
