// Leaderboards: the ranked candidates of each task.

class TaskList {
  title = "Leaderboards";

  constructor(data) {
    this.data = data;
    this.list = element("ul", { class: "task-list" });
    this.node = element("div", { class: "view" }, element("h1", {}, "Leaderboards"), this.list);
  }

  async start() {
    const { runs } = await this.data.runs();
    const tasks = new Map();
    for (const run of runs) tasks.set(run.task, [...(tasks.get(run.task) ?? []), run]);
    const candidates = (group) => new Set(group.map((run) => run.candidate)).size;
    const rows = [...tasks]
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([task, group]) =>
        element(
          "li",
          {},
          link(taskAddress(task), { title: task }, shortTask(task)),
          element("span", { class: "soft" }, `${plural(candidates(group), "candidate")} in ${plural(group.length, "run")}`),
        ),
      );
    fill(this.list, ...(rows.length ? rows : [element("li", {}, "No run yet.")]));
  }

  refresh() {
    return this.start();
  }

  up() {
    return addressOf([]);
  }

  close() {}
}

class LeaderboardPage {
  constructor(data, task) {
    this.data = data;
    this.task = task;
    this.title = `Leaderboard · ${shortTask(task)}`;
    this.node = element("div", { class: "view" });
  }

  async start() {
    const { boards } = await this.data.leaderboard(this.task);
    fill(
      this.node,
      element("p", { class: "crumbs" }, link(addressOf(["tasks"]), {}, "Leaderboards")),
      element("h1", { title: this.task }, shortTask(this.task)),
      boards.length
        ? boards.map((board) => this.board(board))
        : element("p", { class: "soft" }, "No run of this task is complete."),
    );
  }

  refresh() {
    return this.start();
  }

  board(board) {
    const scale = scaleOf(board.entries.map((entry) => entry.metric));
    const options = Object.entries(board.non_default_options).map(
      ([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`,
    );
    const runs = board.entries.map((entry) => entry.run);
    const rows = board.entries.map((entry) => {
      const candidateOptions = Object.entries(entry.options).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
      return element(
        "tr",
        {},
        element("td", { class: "figure" }, String(entry.rank)),
        element(
          "td",
          { class: "figure soft wide" },
          entry.best_rank === entry.worst_rank ? String(entry.rank) : `${entry.best_rank} – ${entry.worst_rank}`,
        ),
        element(
          "th",
          { scope: "row" },
          link(runAddress(entry.run), { title: entry.candidate }, shortCandidate(entry.candidate)),
          candidateOptions.length ? element("span", { class: "soft settings" }, ` ${candidateOptions.join(", ")}`) : null,
          entry.runs > 1 ? element("span", { class: "soft small" }, ` best of ${count(entry.runs)} runs`) : null,
        ),
        element("td", { class: "figure" }, metricText(entry.metric)),
        element("td", { class: "bar" }, intervalBar(entry.metric, scale)),
        element("td", { class: "figure soft wide" }, intervalText(entry.metric)),
        element(
          "td",
          { class: "figure soft wide" },
          `n ${count(entry.n)}`,
          entry.errors ? element("span", { class: "errors" }, `! ${count(entry.errors)}`) : null,
        ),
        element("td", { class: "soft wide" }, day(entry.created)),
      );
    });
    const head = [
      ["#", "figure"],
      ["rank range", "figure wide"],
      ["", ""],
      [board.metric, "figure"],
      ["", ""],
      ["95 % interval", "figure wide"],
      ["", "wide"],
      ["", "wide"],
    ];
    return section(
      `Version ${board.version}${options.length ? ` · ${options.join(", ")}` : ""}`,
      { class: "board" },
      element(
        "table",
        { class: "metrics" },
        element("caption", { class: "unseen" }, `${this.task}, ${board.metric}`),
        element(
          "thead",
          {},
          element(
            "tr",
            {},
            head.map(([name, style]) => element("th", { scope: "col", class: style }, name)),
          ),
        ),
        element("tbody", {}, rows),
      ),
      runs.length > 1 && (this.data.live || runs.length === 2)
        ? element(
            "p",
            { class: "actions" },
            link(
              comparisonAddress(runs),
              {},
              runs.length === 2 ? "Compare the two" : `Compare all ${count(runs.length)}`,
            ),
          )
        : null,
    );
  }

  up() {
    return addressOf(["tasks"]);
  }

  close() {}
}
