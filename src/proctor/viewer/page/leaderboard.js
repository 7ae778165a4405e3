// Leaderboards: for each task, who did best, and how sure that is.

class TaskList {
  title = "Leaderboards";

  constructor(data) {
    this.data = data;
    this.node = element("div", { class: "view" }, element("h1", {}, "Leaderboards"));
  }

  async start() {
    const { runs } = await this.data.runs();
    const tasks = new Map();
    for (const run of runs) tasks.set(run.task, [...(tasks.get(run.task) ?? []), run]);
    const rows = [...tasks].sort(([a], [b]) => a.localeCompare(b)).map(([task, its]) => element("li", {}, link(taskAddress(task), {}, task), element("span", { class: "soft" }, ` ${plural(its.length, "run")}, ${plural(new Set(its.map((run) => run.candidate)).size, "candidate")}`)));
    this.node.append(rows.length ? element("ul", { class: "task-list" }, rows) : element("p", {}, "No run yet."));
  }

  up() {
    return addressOf([]);
  }

  close() {}
}
class LeaderboardPage {}
