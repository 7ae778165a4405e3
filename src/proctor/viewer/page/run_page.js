// A run: its configuration, its metrics and its samples.

const SAMPLE_COLUMNS = [
  ["", "verdict"],
  ["Sample", "sample"],
  ["Outcome", "outcome"],
  ["Score", "figure score"],
  ["Answer", "answer"],
  ["Tokens", "figure tokens"],
  ["Time", "figure time"],
];
const KINDS = [
  ["pass", "passed"],
  ["fail", "failed"],
  ["error", "errors"],
  ["unparsed", "unparsed"],
  ["truncated", "truncated"],
];
const SEARCH_DELAY = 120; // milliseconds after the last key

class RunPage {
  constructor(data, run, query) {
    this.data = data;
    this.id = run;
    this.query = filterQuery(query);
    this.table = new VirtualTable({
      label: "Samples",
      kind: "samples",
      columns: SAMPLE_COLUMNS,
      fetch: (start, limit) => data.lines(this.id, filterOf(this.query), start, limit),
      cells: (line) => this.cells(line),
      address: (line) => sampleAddress(this.id, line.sample, line.epoch, this.query),
      isVisited: (line) => visited.sample === sampleAddress(this.id, line.sample, line.epoch),
    });
    this.header = element("header", { class: "run-header" });
    this.actions = element("div", { class: "actions" });
    this.results = element("div", { class: "results" });
    this.outcomes = element("div", { class: "outcomes", role: "group", "aria-label": "Outcomes: show only" });
    this.search = element("input", {
      type: "search",
      value: this.query.q ?? "",
      placeholder: "text, or key:value of the metadata",
      "aria-label": "Search in prompts, answers and metadata",
      "data-search": true,
      autocomplete: "off",
      on: { input: () => this.typed() },
    });
    this.matches = element("span", { class: "found", role: "status" });
    this.filters = element("div", { class: "filters sticky" }, this.search, this.marks(), this.matches);
    this.plots = element("div", {});
    this.node = element(
      "div",
      { class: "view" },
      this.header,
      this.actions,
      this.results,
      this.plots,
      this.outcomes,
      this.filters,
      this.table.node,
    );
  }

  get title() {
    return this.run ? `${shortTask(this.run.task)} · ${this.run.candidate}` : this.id;
  }

  async start() {
    const rows = this.data.lines(this.id, filterOf(this.query), 0, PAGE_SIZE);
    rows.catch(() => {}); // the other request reports an unknown run
    this.take(await this.data.run(this.id));
    this.showActions();
    await this.fillTable(rows);
    visited.run = this.id;
  }

  async refresh() {
    this.take(await this.data.run(this.id));
    await this.fillTable();
  }

  async fillTable(rows) {
    this.filters.classList.add("busy");
    try {
      await this.table.renew(rows);
    } finally {
      this.filters.classList.remove("busy");
    }
    const some = isEverything(filterOf(this.query))
      ? plural(this.table.total, "record")
      : `${count(this.table.total)} found`;
    if (this.matches.textContent !== some) this.matches.textContent = some;
  }

  take(about) {
    const snapshot = JSON.stringify(about);
    if (snapshot === this.snapshot) return; // keep open <details>
    this.snapshot = snapshot;
    this.run = about.run;
    this.id = about.run.id;
    this.counts = about.counts;
    this.kinds = about.kinds;
    this.rescored = about.rescored;
    this.notice = about.notice;
    this.showHeader();
    this.showResults();
    this.showOutcomes();
  }

  showHeader() {
    const run = this.run;
    const changed = run.provenance.changed_settings;
    const settings = Object.entries(run.config.settings ?? {})
      .filter(([key]) => changed?.includes(key) ?? true)
      .map(([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`);
    const done = run.status === "running" ? progressBar(total(this.counts), run.total) : null;
    fill(
      this.header,
      element(
        "h1",
        { title: run.task },
        shortTask(run.task),
        element("span", { class: "soft" }, ` version ${run.version}`),
      ),
      element(
        "p",
        { class: "candidate" },
        run.candidate,
        " ",
        statusBadge(run.status),
        done,
        run.tags.map((tag) => element("span", { class: "tag" }, tag)),
      ),
      run.reason ? element("p", { class: "notice" }, run.reason) : "",
      this.notice ? element("p", { class: "notice warning" }, this.notice) : "",
      facts([
        ["started", moment(run.created)],
        ["took", run.seconds ? duration(run.seconds) : null],
        ["seed", run.config.seed === undefined ? null : String(run.config.seed)],
        [
          "tokens",
          run.usage.input_tokens + run.usage.output_tokens
            ? `${count(run.usage.input_tokens)} in, ${count(run.usage.output_tokens)} out`
            : null,
        ],
        ["cost", cost(run.usage.cost)],
        ["agent", run.provenance.agent_held ?? null],
        ["run", element("code", {}, run.id)],
      ]),
      settings.length ? element("p", { class: "soft settings" }, settings.join("  ")) : "",
    );
  }

  // Built once, so that open <details> stay open while a run grows.
  showActions() {
    const { config, provenance, task } = this.run;
    fill(
      this.actions,
      link(taskAddress(task), {}, "Leaderboard of this task"),
      button("Plots", (event) => this.togglePlots(event), { class: "quiet", "aria-expanded": "false" }),
      folded("Configuration and provenance", verbatim(JSON.stringify({ config, provenance }, null, 2))),
    );
  }

  showResults() {
    const groups = Object.entries(this.run.groups).map(([key, values]) => this.group(key, values));
    fill(
      this.results,
      Object.keys(this.run.metrics).length
        ? section("Result", {}, metricsTable(this.run.metrics, "Metrics with 95 % intervals"))
        : "",
      ...groups,
      this.rescored ? this.reviewed() : null,
    );
  }

  // The metrics with people's scores are loaded on demand.
  reviewed() {
    const counted = element("div", {});
    const count = async (event) => {
      if (!event.target.open || counted.firstChild) return;
      const { metrics, words } = await this.data.reviewed(this.id);
      fill(counted, metricsTable(metrics, "With people's scores"), element("p", { class: "soft" }, `${words}.`));
    };
    const parts = folded(`With people's scores (${this.rescored})`, counted);
    parts.addEventListener("toggle", count);
    return element("div", { class: "reviewed" }, parts);
  }

  group(key, values) {
    const names = [...new Set(Object.values(values).flatMap(Object.keys))];
    const shown = Object.entries(values).map(([value, metrics]) => [value, metrics[names[0]]]);
    const scale = scaleOf(shown.map(([, metric]) => metric).filter(Boolean));
    const rows = shown.map(([value, metric]) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, link(runAddress(this.id, { q: searchFor(key, value) }), {}, value)),
        element("td", { class: "figure" }, metricText(metric)),
        element("td", { class: "bar" }, metric ? intervalBar(metric, scale) : null),
        element("td", { class: "figure soft" }, intervalText(metric)),
        element("td", { class: "figure soft wide" }, metric?.n ? `n ${count(metric.n)}` : ""),
      ),
    );
    return section(`${names[0]} by ${key}`, {}, element("table", { class: "metrics" }, element("tbody", {}, rows)));
  }

  // A button for each outcome shows only its samples.
  showOutcomes() {
    const chip = (value, words, n, mark) =>
      button([mark, ` ${words} `, element("span", { class: "figure" }, count(n))], () => this.only(value), {
        class: "chip",
        "aria-pressed": String((this.query.outcome ?? "") === value),
      });
    const named = this.otherOutcomes();
    const focused =
      document.activeElement?.closest(".outcomes") === this.outcomes
        ? [...this.outcomes.children].indexOf(document.activeElement)
        : -1;
    fill(
      this.outcomes,
      chip("", "all", total(this.counts), ""),
      ...KINDS.filter(([kind]) => this.kinds[kind]).map(([kind, words]) =>
        chip(kind, words, this.kinds[kind], verdictMark(kind)),
      ),
      named.length ? element("span", { class: "divider", "aria-hidden": "true" }) : "",
      ...named.map(([name, n]) => chip(name, name, n, "")),
    );
    if (focused >= 0) this.outcomes.children[focused]?.focus();
  }

  // Outcomes that add information to passed and failed.
  otherOutcomes() {
    const named = Object.entries(this.counts).filter(([name]) => !(name in this.kinds));
    const alike = [this.kinds.pass, this.kinds.fail - this.kinds.unparsed - this.kinds.truncated];
    return named.every(([, n]) => alike.includes(n)) ? [] : named;
  }

  marks() {
    const box = (name, words) =>
      element(
        "label",
        { class: "tick" },
        element("input", {
          type: "checkbox",
          checked: this.query[name] === "1",
          on: { change: (event) => this.setQuery({ [name]: event.target.checked ? "1" : undefined }) },
        }),
        ` ${words}`,
      );
    return [box("starred", "starred"), box("commented", "commented")];
  }

  only(outcome) {
    this.setQuery({ outcome });
    this.showOutcomes();
  }

  typed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.setQuery({ q: this.search.value.trim() }), SEARCH_DELAY);
  }

  setQuery(change) {
    this.query = { ...this.query, ...change };
    replaceAddress(runAddress(this.id, this.query));
    this.table.selected = -1;
    const top = this.outcomes.offsetTop;
    if (scrollY > top) scrollTo(0, top);
    return this.fillTable();
  }

  async togglePlots(event) {
    const open = !this.plots.firstChild;
    event.currentTarget.setAttribute("aria-expanded", String(open));
    fill(this.plots);
    if (open) this.plots.append(await plotsSection(this.data, [this.id]));
  }

  cells(line) {
    const cell = (style, ...inside) => element("div", { class: `cell ${style}`, role: "cell" }, ...inside);
    return [
      cell("verdict", verdictMark(verdictOf(line.value, line.outcome))),
      cell(
        "sample",
        link(
          sampleAddress(this.id, line.sample, line.epoch, this.query),
          { class: "opens" },
          line.sample_id,
          line.epoch ? ` (${line.epoch + 1})` : "",
        ),
        line.starred ? element("span", { class: "star", title: "starred" }, "★") : null,
        line.comments
          ? element("span", { class: "comments", title: plural(line.comments, "comment") }, `❝${line.comments}`)
          : null,
      ),
      cell("outcome", line.outcome),
      cell("figure score", line.value === null ? NONE : number(line.value, Number.isInteger(line.value) ? 0 : 2)),
      cell("answer", line.answer),
      cell("figure tokens", line.tokens ? count(line.tokens) : NONE),
      cell("figure time", line.seconds ? duration(line.seconds) : NONE),
    ];
  }

  key(event) {
    return tableKey(this.table, event);
  }

  up() {
    return addressOf([]);
  }

  close() {
    this.table.close();
    clearTimeout(this.timer);
  }
}

function total(counts) {
  return Object.values(counts).reduce((sum, n) => sum + n, 0);
}
