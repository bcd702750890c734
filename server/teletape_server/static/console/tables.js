// Tables of the console: a filter, columns that sort, and pages. A row is drawn again only if it has changed.

import { count, make } from "./elements.js";

const PAGE = matchMedia("(max-width: 800px)").matches ? 15 : 50; // rows; on a narrow screen each is a card
const FEW = 8; // rows that need no filter

/**
 * A table.
 *
 * Columns have a `name` and `value`, which returns what is sorted and filtered by; `cell`, if there is one, returns what
 * is shown of a row: a text or nodes. Numbers are `numeric`.
 */
export class Table {
  /**
   * @param {{label: string, filter?: string, empty: string, id: (row: any) => string, order?: string, columns: any[]}} of -
   *   label: of the table, for screen readers; filter: of the field, without which there is none; empty: shown without
   *   rows; id: of a row; order: the name of the column by which rows are sorted at first, with "-" the largest first.
   */
  constructor({ label, filter, empty, id, order = "", columns }) {
    Object.assign(this, { id, columns, empty, all: [], shown: PAGE, drawn: new Map() });
    this.order = { name: order.replace("-", ""), down: order.startsWith("-") };
    this.heads = columns.map((column) => this.head(column));
    this.body = make("tbody", { role: "rowgroup" });
    this.table = make(
      "table",
      { "aria-label": label, role: "table" },
      make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...this.heads)),
      this.body,
    );
    this.filter = filter ? make("input", { type: "search", placeholder: filter, "aria-label": filter, input: () => this.draw() }) : null;
    this.more = make("button", { type: "button", class: "hidden", click: () => this.enlarge() });
    this.number = make("span", { class: "soft", role: "status" });
    this.note = make("p", { class: "soft hidden" });
    this.element = make("div", { class: "table" }, (this.search = make("div", { class: "row" }, this.filter, this.number)), this.table, this.note, this.more);
  }

  head({ name, cell }) {
    const button = make("button", { type: "button", class: "sort", click: () => this.sort(name) }, name);
    return make("th", { scope: "col", role: "columnheader", "data-name": name }, cell && !name ? null : button);
  }

  sort(name) {
    this.order = { name, down: this.order.name === name && !this.order.down };
    this.draw();
  }

  enlarge() {
    const first = this.body.children.length;
    this.shown += PAGE;
    this.draw();
    this.body.children[first]?.querySelector("button, a, summary")?.focus();
  }

  /** Shows these rows. */
  set(rows) {
    this.all = rows;
    this.draw();
  }

  draw() {
    const words = (this.filter?.value ?? "").trim().toLowerCase().split(/\s+/).filter(Boolean);
    const text = (row) => this.columns.map(({ value }) => (value ? value(row) : "")).join(" ").toLowerCase();
    const rows = words.length ? this.all.filter((row) => words.every((word) => text(row).includes(word))) : [...this.all];
    const column = this.columns.find(({ name }) => name === this.order.name);
    if (column) {
      const way = this.order.down ? -1 : 1;
      rows.sort((a, b) => way * compare(column.value(a), column.value(b)));
    }
    for (const head of this.heads) {
      if (head.dataset.name === this.order.name) head.setAttribute("aria-sort", this.order.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    const shown = rows.slice(0, this.shown).map((row) => this.row(row));
    if (shown.length !== this.body.children.length || shown.some((row, place) => row !== this.body.children[place])) this.body.replaceChildren(...shown);
    this.number.textContent = words.length ? `${count(rows.length)} of ${count(this.all.length)}` : count(this.all.length);
    this.search.classList.toggle("hidden", this.all.length <= FEW && !words.length);
    this.note.textContent = this.all.length ? "None has these words." : this.empty;
    this.note.classList.toggle("hidden", rows.length > 0);
    this.table.classList.toggle("hidden", !rows.length);
    this.more.textContent = `Show ${count(Math.min(PAGE, rows.length - shown.length))} more of ${count(rows.length)}`;
    this.more.classList.toggle("hidden", rows.length <= shown.length);
  }

  row(row) {
    const [id, state] = [this.id(row), JSON.stringify(row)];
    const known = this.drawn.get(id);
    if (known?.state === state) return known.element;
    const cells = this.columns.map(({ name, value, cell, numeric }) => {
      const shown = cell ? cell(row) : value(row);
      const attributes = { role: "cell", "data-name": name, class: numeric ? "numeric" : null };
      return make("td", attributes, make("div", {}, ...(Array.isArray(shown) ? shown : [shown])));
    });
    const element = make("tr", { role: "row", "data-row": id }, ...cells);
    this.drawn.set(id, { state, element });
    return element;
  }
}

const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
