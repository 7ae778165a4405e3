// A table of any length: only the rows in sight are elements, and only their pages are asked for.

const ROWS_AT_ONCE = 100; // a page of rows
const BEYOND = 8; // rows made above and below what can be seen
const CALM = 40; // milliseconds for which a place must stay in sight before its rows are asked for

class VirtualTable {
  // `fetch(start, limit)` gives {total, lines}; `cells(line)` the cells of a row; `address(line)` where it leads;
  // `isVisited(line)` says which row the reader comes back from.
  constructor({ label, columns, fetch, cells, address, kind, isVisited }) {
    this.fetch = fetch;
    this.cells = cells;
    this.address = address;
    this.isVisited = isVisited ?? (() => false);
    this.total = 0;
    this.selected = -1;
    this.pages = new Map(); // number → lines
    this.asked = new Set();
    this.generation = 0;
    this.rows = new Map(); // position → element
    this.head = element(
      "div",
      { class: "row head", role: "row" },
      columns.map(([name, style]) => element("div", { class: `cell ${style}`, role: "columnheader" }, name)),
    );
    this.body = element("div", { class: "rows", role: "rowgroup" });
    this.node = element("div", { class: `table ${kind}`, role: "table", "aria-label": label }, this.head, this.body);
    this.onScroll = () => {
      if (!this.drawing) this.drawing = requestAnimationFrame(() => this.draw());
    };
    addEventListener("scroll", this.onScroll, { passive: true });
    addEventListener("resize", this.onScroll);
  }

  close() {
    this.closed = true;
    removeEventListener("scroll", this.onScroll);
    removeEventListener("resize", this.onScroll);
    cancelAnimationFrame(this.drawing);
    clearTimeout(this.timer);
  }

  // Asks for what is in sight anew; rows stay until the new ones are there.
  async renew(firstPage) {
    const generation = ++this.generation;
    const [from] = this.sight();
    const page = Math.max(0, Math.floor(from / ROWS_AT_ONCE));
    const found = await (firstPage && page === 0 ? firstPage : this.fetch(page * ROWS_AT_ONCE, ROWS_AT_ONCE));
    if (generation !== this.generation || this.closed) return;
    this.pages.clear();
    this.asked.clear();
    this.accept(page, found);
    for (const [position, row] of this.rows) {
      if (row.told === JSON.stringify(this.line(position))) continue; // it stays, with the focus that may be on it
      row.remove();
      this.rows.delete(position);
    }
    this.draw();
  }

  accept(page, found) {
    this.total = found.total;
    if (found.lines.length || page === 0) this.pages.set(page, found.lines);
    this.node.setAttribute("aria-rowcount", String(this.total + 1));
  }

  line(position) {
    return this.pages.get(Math.floor(position / ROWS_AT_ONCE))?.[position % ROWS_AT_ONCE];
  }

  rowHeight() {
    return parseFloat(getComputedStyle(this.node).getPropertyValue("--row")) || 40;
  }

  // Positions of the first row in sight, and of the first below.
  sight() {
    const height = this.rowHeight();
    const above = -this.body.getBoundingClientRect().top;
    return [Math.floor(above / height), Math.ceil((above + innerHeight) / height)];
  }

  draw() {
    this.drawing = 0;
    if (!this.node.isConnected) return;
    const height = this.rowHeight();
    this.body.style.height = `${this.total * height}px`;
    const [top, bottom] = this.sight();
    const from = Math.max(0, top - BEYOND);
    const to = Math.min(this.total, bottom + BEYOND);
    for (const [position, row] of this.rows) {
      if (position >= from && position < to && (row.filled || !this.line(position))) continue;
      if (row.contains(document.activeElement) && position >= from && position < to) this.refocus = position;
      row.remove();
      this.rows.delete(position);
    }
    // From below, so that each new row can be put before the next: their order is that of the table, for all who read it.
    let after = null;
    for (let position = to - 1; position >= from; position--) {
      if (!this.rows.has(position)) this.body.insertBefore(this.makeRow(position), after);
      after = this.rows.get(position);
    }
    for (const [position, row] of this.rows) row.style.transform = `translateY(${position * height}px)`;
    if (this.refocus !== undefined && this.rows.get(this.refocus)?.filled) {
      this.rows.get(this.refocus).querySelector("a")?.focus({ preventScroll: true });
      this.refocus = undefined;
    }
    this.askFor(from, to);
  }

  makeRow(position) {
    const line = this.line(position);
    if (line && this.selected < 0 && this.isVisited(line)) this.selected = position;
    const chosen = position === this.selected ? " chosen" : "";
    const row = element("div", {
      class: `row${line ? "" : " empty"}${chosen}`,
      role: "row",
      "aria-rowindex": String(position + 2),
    });
    row.filled = Boolean(line);
    row.told = JSON.stringify(line);
    if (line) {
      row.append(...this.cells(line, position));
      row.addEventListener("click", (event) => {
        if (event.target.closest("a, button, input, label") || getSelection().toString()) return;
        location.hash = this.address(line);
      });
    }
    this.rows.set(position, row);
    return row;
  }

  // A page that is only passed by on the way to another is not asked for.
  askFor(from, to) {
    clearTimeout(this.timer);
    const missing = this.missing(from, to);
    if (missing.length)
      this.timer = setTimeout(() => missing.forEach((page) => this.load(page)), this.pages.size ? CALM : 0);
  }

  missing(from, to) {
    const pages = [];
    for (let page = Math.floor(from / ROWS_AT_ONCE); page * ROWS_AT_ONCE < to; page++) {
      if (!this.pages.has(page) && !this.asked.has(page)) pages.push(page);
    }
    return pages;
  }

  async load(page) {
    const generation = this.generation;
    this.asked.add(page);
    try {
      const found = await this.fetch(page * ROWS_AT_ONCE, ROWS_AT_ONCE);
      if (generation !== this.generation || this.closed) return;
      this.accept(page, found);
      this.draw();
    } finally {
      this.asked.delete(page);
    }
  }

  // The row after the chosen one, or before it; the first in sight where none is chosen.
  step(by) {
    if (!this.total) return;
    const [first] = this.sight();
    this.choose(this.selected < 0 ? Math.max(0, first) : this.selected + by);
  }

  choose(position) {
    this.selected = Math.min(Math.max(position, 0), this.total - 1);
    for (const [at, row] of this.rows) row.classList.toggle("chosen", at === this.selected);
    const height = this.rowHeight();
    const top = this.body.getBoundingClientRect().top + this.selected * height;
    const covered = this.head.getBoundingClientRect().bottom;
    if (top < covered) scrollBy(0, top - covered - height);
    else if (top + height > innerHeight) scrollBy(0, top + 2 * height - innerHeight);
    this.refocus = this.selected;
    this.draw();
  }

  openChosen() {
    const line = this.line(this.selected);
    if (line) location.hash = this.address(line);
    return Boolean(line);
  }
}
