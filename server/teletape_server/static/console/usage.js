// "Usage": why your requests wait, who has the server now, and who computed when.

import { request } from "../shared/api.js";
import { bytes, computed, count, duration, make, meter, number } from "./elements.js";
import { Table } from "./tables.js";
import { chart } from "./timeline.js";

const SPANS = { minutes: "3 hours, by minutes", hours: "2 days, by hours", days: "30 days" };
const LINE_SECONDS = 60; // between two readings of the timeline

const seconds = (value) => duration(value * 1000);

function waitText({ seconds: since, session, wait }) {
  const starts = wait.starts_in_seconds;
  const when = wait.position && starts !== null ? `, starts in about ${seconds(starts)}` : "";
  const ahead = wait.ahead.map(({ owner, session: id, running_seconds: ran, seconds_left: left }) =>
    make("li", {}, `${owner}${id ? `, session ${id}` : ""}: ${ran === null ? "waits" : `has run ${seconds(ran)}`}${left === null ? "" : `, about ${seconds(left)} left`}`),
  );
  return make(
    "li",
    { class: wait.position ? "waits" : null },
    make("p", {}, make("b", {}, session ?? "a run without a session"), since === null ? "" : ` for ${seconds(since)}: `, `${wait.reason}${when}.`),
    ahead.length ? make("ol", { "aria-label": "Ahead of it" }, ...ahead) : null,
  );
}

function share(key) {
  const bar = meter(`Share of ${key.owner}`);
  const text = `${Math.round(key.share * 100)} %`;
  bar.set(key.share, text);
  bar.bar.classList.remove("high"); // to have all of it is no fault
  return [make("span", { class: "share" }, bar.bar, make("span", { class: "soft" }, text))];
}

/** The part of the page; `refresh` reads it anew. */
export function usage({ owner }) {
  const waits = make("ul", { class: "waits-list" });
  const none = make("p", { class: "soft" }, "No request of yours is unanswered.");
  const memory = make("p", { class: "soft" });
  const runs = make("p", { class: "soft" });
  const idle = make("p", { class: "soft" });
  const keys = new Table({
    label: "Who has the server now",
    filter: "Filter by owner",
    empty: "No session has a process, and nothing waits.",
    id: (key) => key.owner,
    columns: [
      { name: "Owner", value: (key) => key.owner, cell: (key) => [key.owner, key.owner === owner ? make("span", { class: "soft" }, " you") : ""] },
      { name: "Share of the processors", value: (key) => key.share, cell: share },
      { name: "Computing", value: (key) => key.computing, numeric: true },
      { name: "Waiting", value: (key) => key.waiting, numeric: true },
      { name: "Sessions with a process", value: (key) => key.sessions, numeric: true },
      { name: "Memory", value: (key) => key.bytes_in_use, cell: (key) => bytes(key.bytes_in_use), numeric: true },
      { name: "Reserved", value: (key) => key.bytes_reserved, cell: (key) => bytes(key.bytes_reserved), numeric: true },
    ],
  });
  const picture = make("div", { id: "timeline" });
  const span = make("select", { "aria-label": "Time shown", change: () => drawLine() }, ...Object.entries(SPANS).map(([value, text]) => make("option", { value }, text)));
  let read = 0;

  async function drawLine() {
    read = performance.now();
    const wanted = span.value;
    const { timeline, processors } = await request("GET", `v1/usage?timeline=${wanted}`);
    if (wanted !== span.value) return;
    const of = timeline.accounts.map(({ account, seconds: values }) => ({ name: account, values: values.map((value) => value / timeline.step_seconds) }));
    picture.replaceChildren(
      chart({
        label: "Processors that computed",
        began: Date.parse(timeline.began_at),
        step: timeline.step_seconds * 1000,
        steps: of[0]?.values.length ?? 0,
        series: of,
        text: number,
        total: (values) => computed(values.reduce((sum, value) => sum + value, 0) * timeline.step_seconds),
        line: { value: processors, text: `${count(processors)} processor${processors === 1 ? "" : "s"}` },
      }),
    );
  }

  const element = make(
    "div",
    { class: "view" },
    make("section", { "aria-labelledby": "waits-title" }, make("h2", { id: "waits-title" }, "Your requests"), none, waits),
    make("section", { "aria-labelledby": "box-title" }, make("h2", { id: "box-title" }, "Who has the server now"), keys.element, memory, runs, idle),
    make(
      "section",
      { "aria-labelledby": "line-title" },
      make("div", { class: "bar" }, make("h2", { id: "line-title" }, "Who computed when"), span),
      picture,
    ),
  );
  return {
    element,
    seconds: 2,
    async refresh() {
      const use = await request("GET", "v1/usage");
      const rows = use.requests.map(waitText);
      waits.replaceChildren(...rows);
      none.classList.toggle("hidden", rows.length > 0);
      keys.set(use.keys);
      memory.textContent = `Memory of the machine: ${bytes(use.memory_free)} are free, ${bytes(use.memory_promised)} of that reserved and not yet used.`;
      const waiting = use.waiting_runs ? `, and ${count(use.waiting_runs)} wait` : "";
      runs.textContent = `Runs without a session: ${count(use.runs)} of ${count(use.places)} places are taken${waiting}.`;
      const longest = use.longest_idle;
      idle.textContent = longest ? `Idle for longest: ${longest.session} of ${longest.owner}, for ${seconds(longest.idle_seconds)}, with ${bytes(longest.bytes_in_use)}.` : "";
      if (!read || performance.now() - read > LINE_SECONDS * 1000) await drawLine();
    },
  };
}
