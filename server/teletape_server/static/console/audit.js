// "Audit": what was done on this server, the newest first; for admins.

import { request } from "../shared/api.js";
import { problem } from "./node.js";
import { make, moment } from "./elements.js";
import { Table } from "./tables.js";

const LIMIT = 200; // entries of one answer
export const ACTIONS = ["session.created", "session.ended", "session.seen", "key.created", "key.rotated", "key.revoked", "tokens.revoked", "limits.changed", "function.published", "function.aliased", "function.deleted"];

/** The part of the page; `refresh` reads the newest entries. */
export function audit() {
  const action = make("select", { "aria-label": "Action", change: () => read() }, make("option", { value: "" }, "all actions"), ...ACTIONS.map((name) => make("option", { value: name }, name)));
  const subject = make("input", { type: "search", "aria-label": "Subject", placeholder: "Subject: OWNER:ID, key or account", size: 32, change: () => read() });
  const fault = make("div", {});
  const older = make("button", { type: "button", class: "hidden", click: () => read(next) }, "Older entries");
  let [entries, next] = [[], null];
  const table = new Table({
    label: "Audit",
    filter: "Filter these entries",
    empty: "There is no such entry.",
    id: ({ number }) => String(number),
    columns: [
      { name: "When", value: ({ number }) => number, cell: ({ at }) => [make("time", { datetime: at, title: at }, moment(at))] },
      { name: "Action", value: (entry) => entry.action },
      { name: "By", value: (entry) => entry.owner || "the server", cell: (entry) => [entry.owner || "the server", " ", entry.key ? make("code", {}, entry.key) : ""] },
      { name: "Subject", value: (entry) => entry.subject, cell: (entry) => [make("code", {}, entry.subject)] },
      { name: "How", value: (entry) => entry.detail },
      { name: "From", value: (entry) => entry.address },
    ],
  });

  async function read(after = null) {
    const wanted = new URLSearchParams({ limit: LIMIT });
    for (const [name, value] of Object.entries({ after, action: action.value, subject: subject.value.trim() })) if (value) wanted.set(name, value);
    try {
      const page = await request("GET", `v1/admin/audit?${wanted}`);
      entries = after ? [...entries, ...page.entries] : page.entries;
      next = page.next;
      table.set(entries);
      older.classList.toggle("hidden", next === null);
      fault.replaceChildren();
    } catch (error) {
      fault.replaceChildren(problem(error));
    }
  }

  return {
    element: make(
      "div",
      { class: "view" },
      make(
        "section",
        { "aria-labelledby": "audit-title" },
        make("div", { class: "bar" }, make("h2", { id: "audit-title" }, "Audit"), make("div", { class: "row" }, action, subject, make("button", { type: "button", click: () => read() }, "Refresh"))),
        fault,
        table.element,
        older,
      ),
    ),
    seconds: null,
    refresh: () => read(),
  };
}
