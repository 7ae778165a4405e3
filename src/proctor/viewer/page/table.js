// A virtual table: only visible rows are elements, and only their pages are loaded.

const PAGE_SIZE = 100; // a page of rows
const OVERSCAN = 8; // rows rendered above and below the visible ones
const SETTLE_DELAY = 40; // milliseconds without scrolling before pages are loaded

class VirtualTable {
  // `fetch(start, limit)` returns {total, lines}; `cells(line)` the cells of a row; `address(line)` its link;
  // `isVisited(line)` whether it was visited last.
  constructor({ label, columns, fetch, cells, address, kind, isVisited }) {
    this.fetch = fetch;
    this.cells = cells;
    this.address = address;
    this.isVisited = isVisited ?? (() => false);
    this.total = 0;
    this.selected = -1;
    this.pages = new Map(); // number → lines
    this.requested = new Set();
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

  // Reloads the visible rows; the old ones stay until the new ones arrive.
  async renew(firstPage) {
    const generation = ++this.generation;
    const [from] = this.visibleRange();
    const page = Math.max(0, Math.floor(from / PAGE_SIZE));
    const result = await (firstPage && page === 0 ? firstPage : this.fetch(page * PAGE_SIZE, PAGE_SIZE));
    if (generation !== this.generation || this.closed) return;
    this.pages.clear();
    this.requested.clear();
    this.accept(page, result);
    for (const [position, row] of this.rows) {
      if (row.snapshot === JSON.stringify(this.line(position))) continue; // unchanged: keep it and its focus
      row.remove();
      this.rows.delete(position);
    }
    this.draw();
  }

  accept(page, result) {
    this.total = result.total;
    if (result.lines.length || page === 0) this.pages.set(page, result.lines);
    this.node.setAttribute("aria-rowcount", String(this.total + 1));
  }

  line(position) {
    return this.pages.get(Math.floor(position / PAGE_SIZE))?.[position % PAGE_SIZE];
  }

  rowHeight() {
    return parseFloat(getComputedStyle(this.node).getPropertyValue("--row")) || 40;
  }

  // Positions of the first visible row, and of the first below the window.
  visibleRange() {
    const height = this.rowHeight();
    const above = -this.body.getBoundingClientRect().top;
    return [Math.floor(above / height), Math.ceil((above + innerHeight) / height)];
  }

  draw() {
    this.drawing = 0;
    if (!this.node.isConnected) return;
    const height = this.rowHeight();
    this.body.style.height = `${this.total * height}px`;
    const [top, bottom] = this.visibleRange();
    const from = Math.max(0, top - OVERSCAN);
    const to = Math.min(this.total, bottom + OVERSCAN);
    for (const [position, row] of this.rows) {
      if (position >= from && position < to && (row.filled || !this.line(position))) continue;
      if (row.contains(document.activeElement) && position >= from && position < to) this.refocus = position;
      row.remove();
      this.rows.delete(position);
    }
    // From the last row up, because each new row is inserted before the next one.
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
    this.loadLater(from, to);
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
    row.snapshot = JSON.stringify(line);
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

  // Pages that are only scrolled past are not loaded.
  loadLater(from, to) {
    clearTimeout(this.timer);
    const missing = this.missing(from, to);
    if (missing.length)
      this.timer = setTimeout(() => missing.forEach((page) => this.load(page)), this.pages.size ? SETTLE_DELAY : 0);
  }

  missing(from, to) {
    const pages = [];
    for (let page = Math.floor(from / PAGE_SIZE); page * PAGE_SIZE < to; page++) {
      if (!this.pages.has(page) && !this.requested.has(page)) pages.push(page);
    }
    return pages;
  }

  async load(page) {
    const generation = this.generation;
    this.requested.add(page);
    try {
      const result = await this.fetch(page * PAGE_SIZE, PAGE_SIZE);
      if (generation !== this.generation || this.closed) return;
      this.accept(page, result);
      this.draw();
    } finally {
      this.requested.delete(page);
    }
  }

  // Selects the next or previous row; the first visible one if none is selected.
  step(by) {
    if (!this.total) return;
    const [first] = this.visibleRange();
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
