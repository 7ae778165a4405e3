// Data from the files of an export. A page from a file:// address may not fetch files, but it may load scripts: each
// data file is a script that passes its name and content to `proctorData`.

class FileData {
  live = false;
  #pieces = new Map(); // name → promise of its content
  #waiting = new Map();
  #matches = new Map(); // run and filter → positions of the lines that fit

  constructor() {
    window.proctorData = (name, content) => this.#waiting.get(name)?.(content);
  }

  runs() {
    return this.#piece("runs");
  }

  run(run) {
    return this.#piece(`${run}/run`);
  }

  reviewed(run) {
    return this.#piece(`${run}/reviewed`);
  }

  async lines(run, filter, start, limit) {
    const about = await this.run(run);
    if (isEverything(filter)) {
      return {
        total: about.lines.total,
        lines: await this.#linesAt(run, about, range(start, Math.min(start + limit, about.lines.total))),
      };
    }
    const positions = await this.#positions(run, about, filter);
    return { total: positions.length, lines: await this.#linesAt(run, about, positions.slice(start, start + limit)) };
  }

  async sample(run, sample, epoch, filter) {
    const about = await this.run(run);
    const everything = range(0, about.lines.total);
    const lines = await this.#linesAt(run, about, everything);
    const index = lines.findIndex((line) => line.sample === sample && line.epoch === epoch);
    if (index < 0) throw new Error("This run has no such sample.");
    const records = await this.#piece(`${run}/records-${Math.floor(index / about.records.size)}`);
    const positions = isEverything(filter) ? everything : await this.#positions(run, about, filter);
    const here = positions.indexOf(index);
    const neighbour = (at) =>
      at in positions ? { sample: lines[positions[at]].sample, epoch: lines[positions[at]].epoch } : null;
    const before = here < 0 ? positions.findLastIndex((position) => position < index) : here - 1;
    const after = here < 0 ? positions.findIndex((position) => position > index) : here + 1;
    return {
      ...records[index % about.records.size],
      previous: neighbour(before),
      next: neighbour(after),
      position: here < 0 ? null : here,
      total: positions.length,
    };
  }

  events(run, name) {
    return this.#piece(`${run}/events/${name}`);
  }

  comparison(runs) {
    return this.#piece(`comparisons/${[...runs].sort().join("+")}`);
  }

  plots([run]) {
    return this.#piece(`${run}/plots`);
  }

  async leaderboard(task) {
    const { leaderboards } = await this.runs();
    return this.#piece(`leaderboards/${leaderboards.indexOf(task)}`);
  }

  file(run, name) {
    return `files/${encodeURIComponent(run)}/${name.split("/").map(encodeURIComponent).join("/")}`;
  }

  async #linesAt(run, about, positions) {
    const size = about.lines.size;
    const needed = [...new Set(positions.map((position) => Math.floor(position / size)))];
    const pieces = new Map(await Promise.all(needed.map(async (n) => [n, await this.#piece(`${run}/lines-${n}`)])));
    return positions.map((position) => pieces.get(Math.floor(position / size))[position % size]);
  }

  // Texts and metadata are in the records: a search reads all of them once.
  #positions(run, about, filter) {
    const key = JSON.stringify([run, filter]);
    if (!this.#matches.has(key)) this.#matches.set(key, this.#search(run, about, filter));
    return this.#matches.get(key);
  }

  async #search(run, about, filter) {
    const lines = await this.#linesAt(run, about, range(0, about.lines.total));
    let positions = range(0, lines.length).filter((position) => lineFits(lines[position], filter));
    if (!filter.text && !Object.keys(filter.metadata).length) return positions;
    const size = about.records.size;
    const matches = [];
    for (const position of positions) {
      const records = await this.#piece(`${run}/records-${Math.floor(position / size)}`);
      if (recordFits(records[position % size].record, filter)) matches.push(position);
    }
    return matches;
  }

  #piece(name) {
    if (!this.#pieces.has(name)) this.#pieces.set(name, this.#load(name));
    return this.#pieces.get(name);
  }

  #load(name) {
    return new Promise((resolve, reject) => {
      this.#waiting.set(name, resolve);
      const path = name.split("/").map(encodeURIComponent).join("/");
      const script = element("script", {
        src: `data/${path}.js`,
        on: {
          load: () => script.remove(),
          error: () => {
            script.remove();
            reject(new Error("The export does not contain this."));
          },
        },
      });
      document.head.append(script);
    });
  }
}

function range(start, end) {
  return Array.from({ length: Math.max(0, end - start) }, (_, index) => start + index);
}

function lineFits(line, filter) {
  const scored = line.value !== null;
  const kind = { "": true, pass: scored && line.value >= 1, fail: scored && line.value < 1 }[filter.outcome];
  if (!kind && line.outcome !== filter.outcome) return false;
  return (!filter.starred || line.starred) && (!filter.commented || line.comments > 0);
}

function recordFits(record, filter) {
  for (const [key, value] of Object.entries(filter.metadata)) {
    const held = record.sample.metadata?.[key];
    const same = typeof held === "number" && value.trim() ? Number(value) === held : onOneLine(held) === value;
    if (held === undefined || !same) return false;
  }
  const { sample, outputs, score, error } = record;
  const searched = [
    sample.id,
    promptText(sample.input),
    ...outputs.map((output) => output.text),
    onOneLine(score?.answer),
    score?.why ?? "",
    error?.type ?? "",
    error?.message ?? "",
  ];
  const text = filter.text.toLowerCase();
  return searched.some((part) => part.toLowerCase().includes(text));
}

function promptText(prompt) {
  if (typeof prompt === "string") return prompt;
  return prompt
    .flatMap((message) =>
      typeof message.content === "string" ? [message.content] : message.content.map((part) => part.text ?? ""),
    )
    .join("\n");
}
