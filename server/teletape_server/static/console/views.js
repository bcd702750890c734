// The parts of the console, one at a time: the sessions, and those that are read anew from time to time.

import { make } from "./elements.js";
import { problem } from "./node.js";

/** The parts but the sessions: each is loaded when it is opened first. */
const PARTS = {
  usage: async (me) => (await import("./usage.js")).usage(me),
  budgets: async (me) => (await import("./budgets.js")).budgets(me),
  keys: async (me) => (await import("./keys.js")).keys(me),
  audit: async (me) => (await import("./audit.js")).audit(me),
};

/** Which part an address names; "sessions" for all others, which name a session. */
export function partOf(hash) {
  const name = hash.startsWith("#/") ? hash.slice(2) : "";
  return name in PARTS ? name : "sessions";
}

/** Shows a part, and reads it anew as often as it wants while somebody can see it. */
export class Views {
  /**
   * @param {HTMLElement} place - of all parts but the sessions.
   * @param {(error: Error) => boolean} refused - whether an error was dealt with: the key is not taken any more.
   */
  constructor(place, refused) {
    Object.assign(this, { place, refused, opened: new Map(), name: "", timer: null });
    this.fault = make("div", {});
    document.addEventListener("visibilitychange", () => document.hidden || this.refresh());
  }

  /** Forgets all that was read. */
  clear() {
    this.opened.clear();
    this.leave();
  }

  leave() {
    clearTimeout(this.timer);
    this.name = "";
    this.place.replaceChildren();
  }

  async open(name, me) {
    if (name === this.name) return;
    this.leave();
    this.name = name;
    if (!this.opened.has(name)) {
      const view = await PARTS[name](me);
      if (!this.opened.has(name)) this.opened.set(name, view);
    }
    if (name !== this.name) return;
    this.fault.replaceChildren();
    this.place.replaceChildren(this.fault, this.opened.get(name).element);
    await this.refresh();
  }

  async refresh() {
    clearTimeout(this.timer);
    const [name, view] = [this.name, this.opened.get(this.name)];
    if (!view || document.hidden) return;
    try {
      await view.refresh();
      this.fault.replaceChildren();
    } catch (error) {
      if (this.refused(error)) return;
      this.fault.replaceChildren(problem(error));
    }
    if (name === this.name && view.seconds) {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.refresh(), view.seconds * 1000);
    }
  }
}
