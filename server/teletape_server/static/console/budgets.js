// "Budgets": what you may use and have used, as bars and by hours and days; for an admin, that of all accounts.

import { request } from "../shared/api.js";
import { LIMITS, fullest, limitBar, limitBars, part } from "./bars.js";
import { ask, field } from "./dialogs.js";
import { bytes, computed, count, make, moment, number } from "./elements.js";
import { Table } from "./tables.js";
import { chart } from "./timeline.js";

const HOUR = 3600_000;
const SPANS = { hours: { text: "2 days, by hours", step: HOUR, steps: 48 }, days: { text: "30 days", step: 24 * HOUR, steps: 30 } };
const gibHours = (value) => number(Number(value.toFixed(3)));
const MEASURES = {
  compute_seconds: { text: "Computing", of: computed },
  gib_hours: { text: "Memory over time", of: (value) => `${gibHours(value)} GiB-h` },
  requests: { text: "Requests", of: count },
};

const select = (label, options, change) => make("select", { "aria-label": label, change }, ...Object.entries(options).map(([value, { text }]) => make("option", { value }, text)));

/** The history of the caller as a chart, with what is shown to be chosen. */
function history() {
  const picture = make("div", {});
  const measure = select("Measure", MEASURES, () => draw());
  const span = select("Time shown", SPANS, () => draw());
  let known = null;
  function draw() {
    if (!known) return;
    const [{ step, steps }, { text, of }] = [SPANS[span.value], MEASURES[measure.value]];
    const began = (Math.floor(Date.now() / step) - steps + 1) * step;
    const values = new Array(steps).fill(0);
    for (const use of known[span.value]) {
      const place = Math.round((Date.parse(use.at) - began) / step);
      if (place >= 0 && place < steps) values[place] += use[measure.value];
    }
    const series = values.some(Boolean) ? [{ name: known.owner, values }] : [];
    const total = (all) => of(all.reduce((sum, value) => sum + value, 0));
    picture.replaceChildren(chart({ label: text, began, step, steps, series, text: of, total }));
  }
  const element = make(
    "section",
    { "aria-labelledby": "history-title" },
    make("div", { class: "bar" }, make("h2", { id: "history-title" }, "What you have used"), make("div", { class: "row" }, measure, span)),
    picture,
  );
  return { element, set: (me) => ((known = me), draw()) };
}

function setLimits({ account, own_limits: own }, refresh) {
  const inputs = Object.entries(LIMITS).map(([name, { label, unit, size }]) => {
    const value = own[name] === undefined ? null : Number((own[name] / size).toPrecision(6));
    return field(label, make("input", { name, type: "number", min: 0, step: "any", value, placeholder: account.startsWith("@") ? "none" : "the default" }), unit, true);
  });
  ask({
    title: `Limits of ${account}`,
    action: "Set limits",
    children: [make("p", {}, account.startsWith("@") ? "What its members may use together. Empty: no limit." : "Empty: the server's default."), ...inputs],
    async send(form) {
      const limits = {};
      for (const [name, { size }] of Object.entries(LIMITS)) {
        const text = form.elements[name].value.trim();
        if (text) limits[name] = ["sessions", "memory_bytes", "disk_bytes"].includes(name) ? Math.round(Number(text) * size) : Number(text) * size;
      }
      await request("PUT", `v1/admin/limits/${encodeURIComponent(account)}`, limits);
      await refresh();
    },
  });
}

/** Its own limit of which most is used: that of its group is in the table of groups. */
const mostOf = ({ account, limits }) => fullest(limits.filter((state) => state.account === account));

/** That one, and all of them on demand. */
function limitsCell({ account, limits }) {
  const most = mostOf({ account, limits });
  if (!most) return [make("span", { class: "soft" }, "none")];
  if (limits.length === 1) return [make("ul", { class: "bars" }, limitBar(most, account))];
  return [make("ul", { class: "bars" }, limitBar(most, account)), make("details", {}, make("summary", {}, `all ${limits.length} limits`), limitBars(limits, account))];
}

function accountsTable(kind, label, refresh, columns) {
  return new Table({
    label,
    filter: `Filter ${kind}`,
    empty: `There are no ${kind}.`,
    id: ({ account }) => account,
    order: "-Most of a limit",
    columns: [
      ...columns,
      { name: "Most of a limit", value: (row) => (mostOf(row) ? part(mostOf(row)) : -1), cell: limitsCell },
      { name: "Share now", value: (row) => row.share, cell: ({ share }) => `${Math.round(share * 100)} %`, numeric: true },
      { name: "Computing, 1 d", value: ({ used }) => used.compute_seconds_1d, cell: ({ used }) => computed(used.compute_seconds_1d), numeric: true },
      { name: "30 d", value: ({ used }) => used.compute_seconds_30d, cell: ({ used }) => computed(used.compute_seconds_30d), numeric: true },
      { name: "GiB-h, 30 d", value: ({ used }) => used.gib_hours_30d, cell: ({ used }) => gibHours(used.gib_hours_30d), numeric: true },
      { name: "Sessions", value: ({ sessions }) => sessions, numeric: true },
      { name: "Memory", value: ({ memory_bytes: memory }) => memory, cell: ({ memory_bytes: memory }) => bytes(memory), numeric: true },
      { name: "Disk", value: ({ disk_bytes: disk }) => disk, cell: ({ disk_bytes: disk }) => bytes(disk), numeric: true },
      { name: "", cell: (row) => [make("button", { type: "button", "aria-label": `Limits of ${row.account}`, click: () => setLimits(row, refresh) }, "Limits…")] },
    ],
  });
}

/** The part of the page; `refresh` reads it anew. */
export function budgets({ admin }) {
  const warning = make("p", { class: "note hidden", role: "status", "data-state": "refuses" });
  const facts = make("dl", { class: "facts" });
  const own = make("div", {});
  const used = history();
  const view = {
    element: make(
      "div",
      { class: "view" },
      make("section", { "aria-labelledby": "own-title" }, make("h2", { id: "own-title" }, "What you may use"), facts, warning, own),
      used.element,
    ),
    seconds: 15,
    async refresh() {
      const wanted = ["v1/me", ...(admin ? ["v1/admin/limits", "v1/usage"] : [])];
      const [me, all, now] = await Promise.all(wanted.map((path) => request("GET", path)));
      const identity = { owner: me.owner, key: me.key ? `${me.name} (${me.key})` : "none", role: me.role, group: me.group || "none", "key is for": me.scopes.join(", "), "key ends": moment(me.expires_at) };
      facts.replaceChildren(...Object.entries(identity).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
      warning.textContent = me.warning ? `${me.warning.split(";")[0]}.` : "";
      warning.classList.toggle("hidden", !me.warning);
      own.replaceChildren(me.use.limits.length ? limitBars(me.use.limits, me.use.account) : make("p", { class: "soft" }, "There are no limits."));
      used.set(me);
      if (!all) return;
      const isGroup = ({ account }) => account.startsWith("@");
      const shares = new Map(now.keys.map(({ owner, share }) => [owner, share]));
      const rows = all.accounts.filter((row) => !isGroup(row)).map((row) => ({ ...row, share: shares.get(row.account) ?? 0 }));
      const ofGroup = (account) => {
        const members = rows.filter(({ group }) => group === account);
        return { members: members.length, share: members.reduce((sum, { share }) => sum + share, 0) };
      };
      accounts.set(rows);
      groups.set(all.accounts.filter(isGroup).map((row) => ({ ...row, ...ofGroup(row.account) })));
    },
  };
  const refresh = () => view.refresh();
  const groups = accountsTable("groups", "Groups", refresh, [
    { name: "Group", value: ({ account }) => account.slice(1) },
    { name: "Accounts", value: (row) => row.members, numeric: true },
  ]);
  const accounts = accountsTable("accounts", "Accounts", refresh, [
    { name: "Account", value: ({ account }) => account },
    { name: "Group", value: ({ group }) => group.slice(1) },
  ]);
  if (admin) {
    view.element.append(
      make("section", { "aria-labelledby": "groups-title" }, make("h2", { id: "groups-title" }, "Groups"), groups.element),
      make("section", { "aria-labelledby": "accounts-title" }, make("h2", { id: "accounts-title" }, "All accounts"), accounts.element),
    );
  }
  return view;
}
