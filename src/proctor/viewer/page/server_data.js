// What the page shows, asked of the server. `file_data.js` answers the same questions from the files of an export.

class ServerData {
  live = true;

  runs() {
    return this.#ask("runs");
  }

  run(run) {
    return this.#ask("run", { run });
  }

  reviewed(run) {
    return this.#ask("reviewed", { run });
  }

  lines(run, wanted, start, limit) {
    return this.#ask("lines", { run, start, limit, ...asParameters(wanted) });
  }

  sample(run, sample, epoch, wanted) {
    return this.#ask("sample", { run, sample, epoch, ...asParameters(wanted) });
  }

  events(run, name) {
    return this.#ask("events", { run, name });
  }

  comparison(runs, { shared, byId }) {
    return this.#ask("comparison", {
      runs: runs.join(","),
      ...(shared ? { shared: "1" } : {}),
      ...(byId ? { by_id: "1" } : {}),
    });
  }

  plots(runs) {
    return this.#ask("plots", { runs: runs.join(",") });
  }

  leaderboard(task) {
    return this.#ask("leaderboard", { task });
  }

  changes() {
    return this.#ask("changes");
  }

  file(run, name) {
    return `files/${encodeURIComponent(run)}/${name.split("/").map(encodeURIComponent).join("/")}`;
  }

  async review(review) {
    const reply = await fetch("api/reviews", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(review),
    });
    return answerOf(reply);
  }

  async #ask(what, parameters = {}) {
    const query = new URLSearchParams(parameters).toString();
    return answerOf(await fetch(`api/${what}${query ? `?${query}` : ""}`));
  }
}

function asParameters(wanted) {
  const parameters = {};
  for (const key of ["outcome", "text"]) if (wanted[key]) parameters[key] = wanted[key];
  for (const key of ["starred", "commented"]) if (wanted[key]) parameters[key] = "1";
  for (const [key, value] of Object.entries(wanted.metadata)) parameters[`metadata.${key}`] = value;
  return parameters;
}

async function answerOf(reply) {
  const answer = await reply.json().catch(() => null);
  if (reply.ok && answer !== null) return answer;
  throw new Error(answer?.error ?? `The server answered ${reply.status} ${reply.statusText}.`);
}
