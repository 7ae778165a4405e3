// The list of runs: filters, metrics with intervals, and a selection to compare.

const RUN_COLUMNS = [
  ["", "choice"],
  ["Task", "task"],
  ["Model or agent", "model"],
  ["Result", "result"],
  ["Scored", "figure scored"],
  ["Started", "begun"],
];

class RunList {
  title = "Runs";

  constructor(data, query) {
    this.data = data;
    this.query = query;
    this.chosen = new Set();
    this.runs = [];
    this.shown = [];
    this.table = new VirtualTable({
      label: "Runs",
      kind: "runs",
      columns: RUN_COLUMNS,
      fetch: async (start, limit) => ({ total: this.shown.length, lines: this.shown.slice(start, start + limit) }),
      cells: (run) => this.cells(run),
      address: (run) => runAddress(run.id),
      isVisited: (run) => visited.run === run.id,
    });
    this.filters = element("form", {
      class: "filters",
      role: "search",
      on: { submit: (event) => event.preventDefault() },
    });
    this.summary = element("p", { class: "summary", role: "status" });
    this.chosenBar = element("div", {
      class: "chosen-bar",
      hidden: true,
      role: "region",
      "aria-label": "Runs to compare",
    });
    this.node = element(
      "div",
      { class: "view" },
      element("h1", { class: "unseen" }, "Runs"),
      this.filters,
      this.summary,
      this.table.node,
      this.chosenBar,
    );
  }

  async start() {
    const { runs } = await this.data.runs();
    this.runs = runs;
    this.fillFilters();
    await this.apply();
  }

  async refresh() {
    const { runs } = await this.data.runs();
    const before = this.filterKey();
    this.runs = runs;
    if (before !== this.filterKey() && !this.filters.contains(document.activeElement)) this.fillFilters();
    await this.apply();
  }

  // Changes when the options of the filters change.
  filterKey() {
    return JSON.stringify(["task", "candidate", "tags"].map((field) => this.values(field)));
  }

  values(field) {
    return [...new Set(this.runs.flatMap((run) => run[field]))].sort((a, b) => a.localeCompare(b));
  }

  fillFilters() {
    const typed = (name, label, attributes) =>
      element(
        "label",
        {},
        element("span", {}, label),
        element("input", {
          name,
          value: this.query[name] ?? "",
          autocomplete: "off",
          on: { input: () => this.changed() },
          ...attributes,
        }),
      );
    const offered = (name, label, values) =>
      element(
        "label",
        {},
        element("span", {}, label),
        element(
          "select",
          { name, on: { change: () => this.changed() } },
          element("option", { value: "" }, "all"),
          values.map((value) => element("option", { value, selected: this.query[name] === value }, value)),
        ),
      );
    const tags = this.values("tags");
    fill(
      this.filters,
      typed("q", "Search", { type: "search", placeholder: "task, model, run, tag", "data-search": true }),
      offered("task", "Task", this.values("task")),
      offered("model", "Model or agent", this.values("candidate")),
      tags.length ? offered("tag", "Tag", tags) : "",
      typed("from", "From", { type: "date" }),
      typed("to", "To", { type: "date" }),
    );
  }

  changed() {
    this.query = Object.fromEntries([...new FormData(this.filters)].filter(([, value]) => value));
    replaceAddress(addressOf([], this.query));
    scrollTo(0, 0);
    this.apply();
  }

  async apply() {
    this.shown = this.runs.filter((run) => this.fits(run));
    const some =
      this.shown.length === this.runs.length
        ? plural(this.runs.length, "run")
        : `${count(this.shown.length)} of ${plural(this.runs.length, "run")}`;
    const running = this.shown.filter((run) => run.status === "running").length;
    const text = this.runs.length
      ? `${some}${running ? `, ${count(running)} in progress` : ""}`
      : "No runs yet: start one with proctor run TASK --model MODEL.";
    if (this.summary.textContent !== text) this.summary.textContent = text;
    await this.table.renew();
  }

  fits(run) {
    const { q, task, model, tag, from, to } = this.query;
    if ((task && run.task !== task) || (model && run.candidate !== model) || (tag && !run.tags.includes(tag)))
      return false;
    if ((from && day(run.created) < from) || (to && day(run.created) > to)) return false;
    const described = [run.task, run.candidate, run.id, run.settings, ...run.tags].join(" ").toLowerCase();
    return (q ?? "")
      .toLowerCase()
      .split(/\s+/)
      .every((word) => described.includes(word));
  }

  cells(run) {
    const box = element("input", {
      type: "checkbox",
      checked: this.chosen.has(run.id),
      "aria-label": `Compare ${run.task}, ${run.candidate}, ${moment(run.created)}`,
      on: { change: (event) => this.choose(run.id, event.target.checked) },
    });
    const cell = (style, ...inside) => element("div", { class: `cell ${style}`, role: "cell" }, ...inside);
    const running = run.status === "running";
    return [
      cell("choice", element("label", {}, box)),
      cell(
        "task",
        link(runAddress(run.id), { class: "opens", title: run.task }, shortTask(run.task)),
        run.settings ? element("span", { class: "soft settings" }, run.settings) : null,
        run.tags.map((tag) => element("span", { class: "tag" }, tag)),
      ),
      cell("model", element("span", { title: run.candidate }, shortCandidate(run.candidate))),
      cell("result", statusBadge(run.status), running ? progressBar(run.n + run.errors, run.total) : this.result(run)),
      cell(
        "figure scored",
        count(run.n),
        run.errors ? element("span", { class: "errors" }, `! ${count(run.errors)}`) : null,
      ),
      cell("begun", element("time", { datetime: new Date(run.created * 1000).toISOString() }, moment(run.created))),
    ];
  }

  result(run) {
    if (!run.metric) return null;
    const bar = isShare(run.metric)
      ? intervalBar(run.metric)
      : element("span", { class: "soft" }, intervalText(run.metric));
    return [
      element("span", { class: "metric-name soft" }, run.metric_name),
      element("span", { class: "metric-value" }, metricText(run.metric)),
      bar,
    ];
  }

  choose(run, chosen) {
    if (chosen) this.chosen.add(run);
    else this.chosen.delete(run);
    const runs = [...this.chosen];
    this.chosenBar.hidden = !runs.length;
    fill(
      this.chosenBar,
      element("span", {}, `${plural(runs.length, "run")} selected`),
      runs.length > 1
        ? link(comparisonAddress(runs), { class: "button" }, "Compare")
        : element("span", { class: "soft" }, "select another run to compare"),
      button("Clear", () => this.clear(), { class: "quiet" }),
    );
  }

  clear() {
    this.chosen.clear();
    this.chosenBar.hidden = true;
    for (const box of this.table.body.querySelectorAll("input")) box.checked = false;
  }

  key(event) {
    if (event.key === "x") this.table.rows.get(this.table.selected)?.querySelector("input")?.click();
    else return tableKey(this.table, event);
    return true;
  }

  close() {
    this.table.close();
  }
}

// A task file without its folders.
function shortTask(task) {
  return /\.py(:\w+)?$/.test(task) ? task.split("/").at(-1) : task;
}

// A class without its packages.
function shortCandidate(candidate) {
  return candidate.replace(/^(?:[\w]+\.)+(\w+:\w+)$/, "$1");
}

function progressBar(done, total) {
  const words = total ? `${count(done)} of ${count(total)}` : `${count(done)} so far`;
  const bar = total ? element("progress", { max: total, value: done, "aria-label": words }) : null;
  return element("span", { class: "progress" }, bar, ` ${words}`);
}

// Keys of all tables.
function tableKey(table, event) {
  if (event.key === "j" || event.key === "ArrowDown") table.step(1);
  else if (event.key === "k" || event.key === "ArrowUp") table.step(-1);
  else if (event.key === "Enter" && !event.target.closest("a, button, input, summary")) return table.openChosen();
  else return false;
  return true;
}
