// "Keys": yours, or those of all owners for an admin; a new one's secret is shown once.

import { request } from "../shared/api.js";
import { ask, choice, field } from "./dialogs.js";
import { make, moment } from "./elements.js";
import { Table } from "./tables.js";

const DAY = 86400;
const ENDS = { "in an hour": 3600, "in a day": DAY, "in 7 days": 7 * DAY, "in 30 days": 30 * DAY, "in 90 days": 90 * DAY, "in a year": 365 * DAY, never: "" };
const OVERLAPS = { "at once": 0, "in an hour": 3600, "in a day": DAY, "in 7 days": 7 * DAY };
export const SCOPES = { sessions: "sessions and runs", call: "calls of published functions", publish: "publishing", keys: "keys of its owner" };

/** The secret of a new key, which is nowhere else. */
function secret({ id, owner, key }) {
  const text = make("textarea", { readonly: true, rows: 2, "aria-label": "The new key", class: "secret", focus: () => text.select() }, key);
  const copied = make("span", { role: "status", class: "good" });
  const copy = async () => {
    text.select();
    // Outside localhost and HTTPS a page may not write to the clipboard; the selected text can be copied by hand.
    await navigator.clipboard?.writeText(key).then(() => (copied.textContent = "Copied"), () => {});
  };
  return make(
    "div",
    { class: "stack" },
    make("p", {}, `The key ${id} of ${owner}. It is shown this once: the server does not have it.`),
    text,
    make("div", { class: "row" }, copied, make("button", { type: "button", class: "primary", click: copy }, "Copy")),
  );
}

function create(me, refresh) {
  const scopes = Object.entries(SCOPES)
    .filter(([name]) => me.scopes.includes(name))
    .map(([name, text]) => make("label", { class: "check" }, make("input", { type: "checkbox", name: "scope", value: name, checked: name !== "keys" }), `${name}: ${text}`));
  const owned = me.admin
    ? [
        field("Owner", make("input", { name: "owner", required: true, pattern: "[A-Za-z0-9._\\-]{1,64}", value: me.owner }), "whose sessions it sees: one owner for a person, with a key for each machine"),
        field("Role", choice("role", { user: "user", admin: "admin" }, "user"), "an admin sees and ends what all owners have"),
        field("Group", make("input", { name: "group", pattern: "[A-Za-z0-9._\\-]{0,64}" }), "a name for several owners; without it that of the owner's newest key"),
      ]
    : [];
  ask({
    title: "New key",
    action: "Create",
    children: [
      field("Name", make("input", { name: "title", maxlength: 100, autofocus: true }), "where it is used"),
      ...owned,
      make("fieldset", {}, make("legend", {}, "It is for"), ...scopes),
      field("It ends", choice("ends", ENDS, 90 * DAY)),
    ],
    async send(form) {
      const { elements } = form;
      const body = { name: elements.title.value, scopes: [...form.querySelectorAll("[name=scope]:checked")].map(({ value }) => value) };
      if (elements.ends.value) body.expires_in = Number(elements.ends.value);
      if (me.admin) Object.assign(body, { owner: elements.owner.value, role: elements.role.value, group: elements.group.value || null });
      const made = await request("POST", "v1/admin/keys", body);
      await refresh();
      return secret(made);
    },
  });
}

function rotate({ id, name, owner }, refresh) {
  ask({
    title: `Replace the key ${id}`,
    action: "Replace",
    children: [make("p", {}, `A new key of ${owner} allows what ${name || id} does.`), field("The former one ends", choice("overlap", OVERLAPS, DAY))],
    async send(form) {
      const made = await request("POST", `v1/admin/keys/${encodeURIComponent(id)}/rotate`, { overlap: Number(form.elements.overlap.value) });
      await refresh();
      return secret(made);
    },
  });
}

function revoke({ id, name, owner }, refresh) {
  ask({
    title: `Revoke the key ${id}?`,
    action: "Revoke",
    danger: true,
    children: [make("p", {}, `Programs with the key ${name ? `“${name}” ` : ""}of ${owner} are refused within a second. The owner's sessions stay.`)],
    async send() {
      await request("DELETE", `v1/admin/keys/${encodeURIComponent(id)}`);
      await refresh();
    },
  });
}

/** The part of the page; `refresh` reads it anew. */
export function keys(me) {
  const actions = (key) => {
    if (key.source === "environment") return [make("span", { class: "soft" }, "of the environment")];
    if (key.state !== "valid") return [];
    return [
      make("button", { type: "button", "aria-label": `Replace ${key.id}`, click: () => rotate(key, refresh) }, "Replace…"),
      " ",
      make("button", { type: "button", class: "danger", "aria-label": `Revoke ${key.id}`, click: () => revoke(key, refresh) }, "Revoke…"),
    ];
  };
  const stateText = ({ state, revoked_at: revoked, expires_at: expires }) => (state === "revoked" ? `revoked ${moment(revoked)}` : state === "expired" ? `expired ${moment(expires)}` : "valid");
  const all = make("input", { type: "checkbox", change: () => show() });
  let known = [];
  const show = () => table.set(all.checked ? known : known.filter(({ state }) => state === "valid"));
  const table = new Table({
    label: "API keys",
    filter: "Filter by id, name, owner, role, group or scope",
    empty: "There are no valid keys.",
    id: (key) => key.id,
    order: me.admin ? "Owner" : "Key",
    columns: [
      { name: "Key", value: (key) => `${key.name} ${key.id}`, cell: (key) => [make("b", {}, key.name || "–"), " ", make("code", {}, key.id), key.id === me.key ? make("span", { class: "soft" }, " this page's") : ""] },
      ...(me.admin
        ? [
            { name: "Owner", value: (key) => key.owner },
            { name: "Role", value: (key) => key.role, cell: (key) => [make("span", { class: key.role === "admin" ? "warn" : "soft" }, key.role)] },
            { name: "Group", value: (key) => key.group },
          ]
        : []),
      { name: "For", value: (key) => key.scopes.join(", ") || "nothing" },
      { name: "State", value: stateText, cell: (key) => [make("span", { class: key.state === "valid" ? "good" : "soft" }, stateText(key))] },
      { name: "Ends", value: (key) => key.expires_at ?? "9999", cell: (key) => moment(key.expires_at) },
      { name: "Last used", value: (key) => key.used_at ?? "", cell: (key) => moment(key.used_at, "–") },
      { name: "", cell: actions },
    ],
  });
  const view = {
    element: make(
      "div",
      { class: "view" },
      make(
        "section",
        { "aria-labelledby": "keys-title" },
        make(
          "div",
          { class: "bar" },
          make("h2", { id: "keys-title" }, me.admin ? "Keys of all owners" : "Your keys"),
          make("div", { class: "row" }, make("label", { class: "check" }, all, "those that have ended too"), make("button", { type: "button", class: "primary", click: () => create(me, refresh) }, "New key…")),
        ),
        table.element,
      ),
    ),
    seconds: 30,
    async refresh() {
      known = (await request("GET", "v1/admin/keys")).keys;
      show();
    },
  };
  const refresh = () => view.refresh();
  return view;
}
