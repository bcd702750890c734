// The pane of the session that was chosen: its state, memory, requests and what it holds; extend, park, wake and end it.

import { request } from "../shared/api.js";
import { Contents } from "./contents.js";
import { bytes, count, duration, make, meter, moment } from "./elements.js";
import { problem } from "./node.js";
import { pendingReads, Rate, read } from "./reads.js";
import { StateNote } from "./states.js";
import { Tapes } from "./tapes.js";

const SOON = 700; // milliseconds: shorter work is not shown

const $ = (id) => document.getElementById(id);

/** What a session computes, as text. */
export function workText(work) {
  if (!work.requests) return "idle";
  if (work.iterations) return `${count(work.iteration)} of ${count(work.iterations)}`;
  if (work.iteration) return `iteration ${count(work.iteration)}`;
  return work.total > 1 ? `${work.done} of ${work.total} commands` : "running";
}

/** The share of the running request that is done, or null. */
export function share(work) {
  if (work.iterations) return work.iteration / work.iterations;
  return work.total > 1 ? work.done / work.total : null;
}

/** What is shown of the session that was chosen, and what can be done with it. */
export class Pane {
  /**
   * @param {string} name - OWNER:ID.
   * @param {any} facts - the session, as the server describes it.
   * @param {{path: string, isOwn: boolean, admin: boolean, changed: (facts: any) => void}} of - path: of the session;
   *   isOwn: whether it is the caller's; admin: whether the caller sees those of all; changed: takes new facts.
   */
  constructor(name, facts, { path, isOwn, admin, changed }) {
    Object.assign(this, { path, changed });
    this.contents = new Contents(path, isOwn ? facts.id : null);
    this.tapes = new Tapes(this.path, () => this.contents.load());
    this.memory = meter("Memory");
    this.progress = make("progress", { "aria-label": "Progress of the running request", max: 1 });
    this.text = make("span", { role: "status" });
    this.cancel = make("button", { type: "button", click: () => this.act("POST", "/cancel", this.cancel) }, "Cancel");
    this.running = make("div", { class: "running hidden" }, this.progress, this.text, this.cancel);
    this.facts = make("dl", { class: "facts" });
    this.fault = make("div", {});
    this.lastProblem = make("p", { class: "soft problem hidden" });
    this.rate = new Rate();
    this.hours = make("select", { "aria-label": "Keep for" }, ...[[900, "15 min"], [3600, "1 h"], [28800, "8 h"]].map(([seconds, text]) => make("option", { value: seconds, selected: seconds === 3600 }, text)));
    this.extend = make("button", { type: "button", click: () => this.act("POST", "/extend", this.extend, { seconds: Number(this.hours.value) }) }, "Extend");
    this.park = make("button", { type: "button", click: () => this.act("POST", "/park", this.park) }, "Park");
    this.note = new StateNote(name, () => this.wake());
    this.end = make("button", { type: "button", class: "danger", click: () => this.confirm() }, "End session");
    this.element = make(
      "div",
      { class: "pane", "data-session": name },
      make("div", { class: "bar" }, make("h2", {}, facts.id, admin ? make("span", { class: "soft" }, ` ${facts.owner}`) : null), make("div", { class: "row" }, this.hours, this.extend, this.park, this.end)),
      this.fault,
      this.note.element,
      this.running,
      this.memory.bar,
      this.facts,
      this.lastProblem,
      this.contents.element,
      this.tapes.element,
    );
    this.busy = null;
    this.timer = null;
    this.title = facts.id;
    this.update(facts);
  }

  update(facts) {
    const memory = `${bytes(facts.bytes_in_use)} of ${bytes(facts.memory_limit)}`;
    this.memory.set(facts.bytes_in_use / facts.memory_limit, memory);
    this.memory.bar.classList.toggle("hidden", facts.state !== "live");
    const rows = {
      ...(facts.state === "live" ? { memory } : {}),
      device: facts.device,
      created: moment(facts.created_at),
      ...this.prospects(facts),
      requests: this.rate.of(facts.answered.requests),
      problems: count(facts.answered.problems),
    };
    const last = facts.answered.last_problem;
    this.lastProblem.classList.toggle("hidden", !last);
    if (last) this.lastProblem.replaceChildren("last problem, ", make("a", { href: `problems/${last.code}` }, last.code), ` at ${new Date(last.at).toLocaleTimeString()}: ${last.message}`);
    this.facts.replaceChildren(...Object.entries(rows).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", { "data-fact": name }, value))));
    this.note.update(facts);
    const isLive = facts.state === "live";
    this.park.classList.toggle("hidden", facts.durability === "none");
    this.isLive = isLive;
    this.park.disabled = !isLive && !facts.log_to_run;
    for (const part of [this.contents.element, this.tapes.element]) part.classList.toggle("hidden", !isLive);
    if (!isLive) {
      this.rest();
      return;
    }
    const work = facts.running;
    // Reading a tape is a request too: what is over soon changes nothing on the page.
    const busy = work.requests > pendingReads();
    if (!busy || this.busy !== false) {
      this.settle();
      this.show(busy);
    } else this.timer ??= setTimeout(() => this.show(true), SOON);
    const done = share(work);
    if (done === null) this.progress.removeAttribute("value");
    else this.progress.value = done;
    this.text.textContent = `${workText(work)}${work.requests > 1 ? ` · ${work.requests - 1} waiting` : ""}`;
  }

  prospects(facts) {
    const [idle, ends] = [facts.expires_at, facts.ends_at].map((time) => `in ${duration(Date.parse(time) - Date.now())}`);
    if (facts.durability === "none") return { "ends without work": idle, "ends at the latest": ends };
    const recovered = facts.recovered ? { recovered: `record ${count(facts.recovered.record)} in ${facts.recovered.seconds.toFixed(1)} s` } : {};
    const parked = facts.state === "live" ? { "is parked without work": idle } : {};
    return { "on disk": `${bytes(facts.disk_bytes)} of ${bytes(facts.disk_limit)}`, durability: facts.durability, ...parked, ...recovered };
  }

  /** Shows nothing of what is in the session: to read it would wake it. */
  rest() {
    this.settle();
    this.busy = null;
    this.running.classList.add("hidden");
    this.contents.close();
    this.tapes.close();
  }

  async wake() {
    this.note.wake.disabled = true;
    try {
      await read(`${this.path}/variables?limit=1`);
      this.fault.replaceChildren();
    } catch (error) {
      this.fault.replaceChildren(problem(error));
    } finally {
      this.note.wake.disabled = false;
    }
  }

  /** Shows whether the session computes, and draws its tapes when it has finished. */
  show(busy) {
    if (busy === this.busy) return;
    this.busy = busy;
    this.running.classList.toggle("hidden", !busy);
    if (busy) {
      this.tapes.wait();
      return;
    }
    this.contents.load();
    this.tapes.load();
  }

  async act(method, action, button, body = method === "POST" ? {} : undefined) {
    button.disabled = true;
    try {
      const facts = await request(method, this.path + action, action === "/cancel" ? undefined : body);
      this.fault.replaceChildren();
      if (facts) this.changed(facts);
    } catch (error) {
      this.fault.replaceChildren(problem(error));
    } finally {
      button.disabled = button === this.park && !this.isLive;
    }
  }

  confirm() {
    $("confirm-title").textContent = `End the session ${this.title}?`;
    const dialog = $("confirm");
    dialog.onclose = () => {
      if (dialog.returnValue === "end") this.act("DELETE", "", this.end);
      this.end.focus();
    };
    dialog.returnValue = "";
    dialog.showModal();
  }

  settle() {
    clearTimeout(this.timer);
    this.timer = null;
  }

  close() {
    this.settle();
    this.contents.close();
    this.tapes.close();
  }

  ended({ text }) {
    this.close();
    this.element.replaceChildren(make("h2", {}, this.title), make("p", { class: "panel", role: "status" }, `This session has ended: ${text}.`));
  }
}
