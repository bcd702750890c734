// The console: the list of sessions, live, and the pane of the one that was chosen.

import { apiKey, events, request, setApiKey } from "../shared/api.js";
import { bytes, count, duration, make, meter } from "./elements.js";
import { Pane, share, workText } from "./pane.js";
import { counts, isLost, kindOf } from "./states.js";
import { partOf, Views } from "./views.js";

const AGAIN = [500, 1000, 2000, 5000, 10000]; // milliseconds until the stream is opened again
const TICK = 5000; // between two looks at the clock

const $ = (id) => document.getElementById(id);
const sessions = new Map(); // name → {facts, row}
const view = { owner: "", admin: false, key: "", scopes: null, name: null, pane: null, stream: null, state: "" };

const nameOf = (session) => `${session.owner}:${session.id}`;
const pathOf = (name) => {
  const [owner, id] = [name.slice(0, name.indexOf(":")), name.slice(name.indexOf(":") + 1)];
  return `v1/sessions/${encodeURIComponent(owner === view.owner ? id : `${owner}:${id}`)}`;
};

// ------------------------------------------------------------------------------------------------------------ the list
/** What a session does, or where it is. */
function doing({ log_to_run, running, state }) {
  const part = state === "live" && running.requests ? share(running) : null;
  if (part !== null) return `${Math.floor(part * 100)} %`;
  return state === "live" ? workText(running) : state + (log_to_run ? ", log to run" : "");
}

/** Where it computes, and what becomes of it if no request comes. */
function prospects({ device, durability, expires_at, state }) {
  if (state !== "live") return device;
  return `${device} · ${durability === "none" ? "ends" : "parked"} in ${duration(Date.parse(expires_at) - Date.now())}`;
}

const onDisk = ({ disk_bytes, durability }) => (durability === "none" ? "" : `${bytes(disk_bytes)} on disk`);

function newRow(name) {
  const parts = { id: make("b"), owner: make("span", { class: "soft owner" }), work: make("span", { class: "work" }), memory: make("span", { class: "soft" }), ends: make("span", { class: "soft" }), meter: meter("Memory") };
  const button = make(
    "button",
    { type: "button", class: "session-row", "data-session": name, click: () => choose(name) },
    make("span", { class: "line" }, parts.id, parts.owner, parts.work),
    parts.meter.bar,
    make("span", { class: "line" }, parts.memory, parts.ends),
  );
  return { element: make("li", {}, button), button, parts };
}

function put(facts) {
  const name = nameOf(facts);
  let entry = sessions.get(name);
  if (!entry) {
    entry = { row: newRow(name) };
    sessions.set(name, entry);
    $("rows").append(entry.row.element);
  }
  entry.facts = facts;
  drawRow(name, entry);
  if (view.name === name) view.pane?.update(facts);
}

function drawRow(name, { facts, row }) {
  const { parts, button } = row;
  parts.id.textContent = facts.id;
  parts.owner.textContent = view.admin && facts.owner !== view.owner ? facts.owner : "";
  parts.work.textContent = doing(facts);
  parts.work.classList.toggle("busy", facts.state === "live" && facts.running.requests > 0);
  parts.work.classList.toggle("bad", isLost(facts));
  parts.work.classList.toggle("warn", facts.state === "recovering");
  const memory = `${bytes(facts.bytes_in_use)} of ${bytes(facts.memory_limit)}`;
  parts.memory.textContent = [facts.durability === "none" ? memory : facts.state === "live" ? bytes(facts.bytes_in_use) : "", onDisk(facts)].filter(Boolean).join(" · ");
  parts.meter.set(facts.bytes_in_use / facts.memory_limit, memory);
  parts.meter.bar.classList.toggle("hidden", facts.state !== "live");
  parts.ends.textContent = prospects(facts);
  button.toggleAttribute("aria-current", name === view.name);
  if (name === view.name) button.setAttribute("aria-current", "true");
  row.element.classList.toggle("hidden", !matches(facts));
}

function matches(facts) {
  const wanted = $("filter").value.trim().toLowerCase();
  if (view.state && kindOf(facts) !== view.state) return false;
  return !wanted || `${facts.id} ${facts.owner} ${facts.device} ${facts.state}`.toLowerCase().includes(wanted);
}

/** Buttons for the states that there are, by which the list is narrowed. */
function drawStates(numbers) {
  if (view.state && !numbers.has(view.state)) {
    view.state = "";
    drawAll();
  }
  const words = numbers.size > 1 ? [["", sessions.size], ...numbers] : [];
  const places = [...$("states").children];
  while (places.length > words.length) places.pop().remove();
  while (places.length < words.length) {
    const button = make("button", { type: "button", click: () => narrow(button.dataset.state) });
    places.push(button);
    $("states").append(button);
  }
  words.forEach(([word, number], place) => {
    const [button, text] = [places[place], `${word || "all"} ${count(number)}`];
    button.dataset.state = word;
    if (button.textContent !== text) button.textContent = text;
    button.setAttribute("aria-pressed", String(word === view.state));
  });
}

function narrow(word) {
  view.state = word;
  drawAll();
  summary();
}

function drawAll() {
  for (const [name, entry] of sessions) drawRow(name, entry);
}

function summary() {
  const numbers = counts([...sessions.values()].map(({ facts }) => facts));
  $("count").textContent = sessions.size ? count(sessions.size) : "";
  drawStates(numbers);
  $("none").classList.toggle("hidden", sessions.size > 0 || !view.owner);
}

function remove(ended) {
  const name = nameOf(ended);
  sessions.get(name)?.row.element.remove();
  sessions.delete(name);
  if (view.name === name) view.pane?.ended(ended);
}

function choose(name) {
  const before = view.name;
  view.name = name;
  view.pane?.close();
  const entry = sessions.get(name);
  const of = { path: pathOf(name), isOwn: entry?.facts.owner === view.owner, admin: view.admin, changed: put };
  view.pane = entry ? new Pane(name, entry.facts, of) : null;
  $("session").replaceChildren(view.pane?.element ?? make("p", { class: "soft empty" }, `There is no session ${name}.`));
  for (const each of [before, name]) if (sessions.has(each)) drawRow(each, sessions.get(each));
  document.body.classList.toggle("chosen", view.pane !== null);
  history.replaceState(null, "", `#${encodeURIComponent(name)}`);
  if (view.pane && matchMedia("(max-width: 800px)").matches) $("session").scrollIntoView();
}

// ---------------------------------------------------------------------------------------------------------- the stream
function state(text, kind) {
  $("state").textContent = text;
  $("state").className = `state ${kind}`;
}

function snapshot({ owner, admin, sessions: listed }) {
  Object.assign(view, { owner, admin });
  const names = new Set(listed.map(nameOf));
  for (const [name, { facts }] of [...sessions]) if (!names.has(name)) remove({ ...facts, text: "while the console was not connected" });
  listed.forEach(put);
  const wanted = decodeURIComponent(location.hash.slice(1));
  if (view.name === null && sessions.has(wanted)) choose(wanted);
}

/** Asks for a key if the server takes none without or not this one; returns whether that is so. */
function refused(error) {
  if (error.status !== 401) return false;
  views.clear();
  for (const id of ["parts", "part", "console"]) $(id).classList.add("hidden");
  $("key-form").classList.remove("hidden");
  $("key-fault").textContent = apiKey() ? error.message : "";
  state("API key needed", "lost");
  return true;
}

/** Follows the list of sessions until another part is shown. */
async function follow() {
  view.stream?.abort();
  const { signal } = (view.stream = new AbortController());
  for (let failures = 0; !signal.aborted; failures += 1) {
    try {
      for await (const { event, data } of events("GET", "v1/sessions", undefined, { signal })) {
        if (signal.aborted) return;
        failures = 0;
        if (event === "sessions") snapshot(data);
        else if (event === "session") put(data);
        else if (event === "ended") remove(data);
        state("live", "live");
        summary();
      }
      state("The server ended the connection. Connecting again…", "lost");
    } catch (error) {
      if (signal.aborted || refused(error)) return;
      state(error.status ? error.message : "The server does not answer. Connecting again…", "lost");
      if (error.status === 403) return; // the key is not for sessions
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN[Math.min(failures, AGAIN.length - 1)]));
  }
}

// ----------------------------------------------------------------------------------------------------------- the parts
const views = new Views($("part"), refused);

/** Shows the part that the address names. */
function show() {
  const links = [...$("parts").querySelectorAll("a")];
  const isHidden = links.some((link) => link.hash === location.hash && link.classList.contains("hidden"));
  const name = isHidden ? "sessions" : partOf(location.hash);
  const isList = name === "sessions";
  for (const link of links) {
    if (link.hash === `#/${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  $("console").classList.toggle("hidden", !isList);
  $("part").classList.toggle("hidden", isList);
  document.title = `Teletape: ${isList ? "console" : name}`;
  if (!isList) {
    view.stream?.abort();
    view.stream = null;
    views.open(name, view);
    return;
  }
  views.leave();
  if (!view.stream) follow();
  const wanted = decodeURIComponent(location.hash.slice(1));
  if (sessions.has(wanted) && wanted !== view.name) choose(wanted);
}

/** Reads whose key it is, and shows the part that the address names. */
async function enter() {
  state("Connecting…", "");
  for (let failures = 0; ; failures += 1) {
    try {
      const me = await request("GET", "v1/me");
      Object.assign(view, { owner: me.owner, admin: me.role === "admin", key: me.key, scopes: me.scopes });
      break;
    } catch (error) {
      if (refused(error)) return;
      state(error.status ? error.message : "The server does not answer. Connecting again…", "lost");
      await new Promise((resolve) => setTimeout(resolve, AGAIN[Math.min(failures, AGAIN.length - 1)]));
    }
  }
  $("parts").classList.remove("hidden");
  $("who").textContent = view.key ? `${view.owner}${view.admin ? ", admin" : ""}` : "";
  $("leave").classList.toggle("hidden", !apiKey());
  const hidden = { "#/keys": !view.key || !view.scopes.includes("keys"), "#/audit": !view.key || !view.admin || !view.scopes.includes("keys") };
  for (const link of $("parts").querySelectorAll("a")) link.classList.toggle("hidden", hidden[link.hash] ?? false);
  show();
}

addEventListener("hashchange", () => view.scopes && show());

$("leave").addEventListener("click", () => {
  setApiKey("");
  location.reload();
});

$("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setApiKey($("key").value.trim());
  $("key").value = "";
  $("key-form").classList.add("hidden");
  view.stream?.abort();
  view.stream = null;
  enter();
});

$("filter").addEventListener("input", drawAll);

$("rows").addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  const buttons = [...$("rows").querySelectorAll("li:not(.hidden) > button")];
  buttons[buttons.indexOf(document.activeElement) + step]?.focus();
  event.preventDefault();
});

setInterval(() => {
  if (!view.stream) return;
  drawAll();
  if (sessions.has(view.name)) view.pane?.update(sessions.get(view.name).facts);
}, TICK);

enter();
