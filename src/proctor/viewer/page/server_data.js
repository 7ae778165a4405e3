// Data from the server. `file_data.js` has the same methods for an export.

class ServerData {
  live = true;

  runs() {
    return this.#get("runs");
  }

  run(run) {
    return this.#get("run", { run });
  }

  reviewed(run) {
    return this.#get("reviewed", { run });
  }

  lines(run, filter, start, limit) {
    return this.#get("lines", { run, start, limit, ...asParameters(filter) });
  }

  sample(run, sample, epoch, filter) {
    return this.#get("sample", { run, sample, epoch, ...asParameters(filter) });
  }

  events(run, name) {
    return this.#get("events", { run, name });
  }

  comparison(runs, { shared, byId }) {
    return this.#get("comparison", {
      runs: runs.join(","),
      ...(shared ? { shared: "1" } : {}),
      ...(byId ? { by_id: "1" } : {}),
    });
  }

  plots(runs) {
    return this.#get("plots", { runs: runs.join(",") });
  }

  leaderboard(task) {
    return this.#get("leaderboard", { task });
  }

  changes() {
    return this.#get("changes");
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
    return parseResponse(reply);
  }

  async #get(what, parameters = {}) {
    const query = new URLSearchParams(parameters).toString();
    return parseResponse(await fetch(`api/${what}${query ? `?${query}` : ""}`));
  }
}

function asParameters(filter) {
  const parameters = {};
  for (const key of ["outcome", "text"]) if (filter[key]) parameters[key] = filter[key];
  for (const key of ["starred", "commented"]) if (filter[key]) parameters[key] = "1";
  for (const [key, value] of Object.entries(filter.metadata)) parameters[`metadata.${key}`] = value;
  return parameters;
}

async function parseResponse(reply) {
  const answer = await reply.json().catch(() => null);
  if (reply.ok && answer !== null) return answer;
  throw new Error(answer?.error ?? `The server answered ${reply.status} ${reply.statusText}.`);
}
