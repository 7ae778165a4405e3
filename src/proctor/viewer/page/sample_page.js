// A sample of a run: prompt, outputs, verdict, reviews.

const LONG_TEXT = 80; // longer values are collapsed

class SamplePage {
  constructor(data, run, sample, epoch, query) {
    this.data = data;
    this.sampleKey = { run, sample, epoch };
    this.query = filterQuery(query);
    this.node = element("div", { class: "view sample-page" });
  }

  get title() {
    return this.shown
      ? `${this.shown.record.sample.id} · ${shortTask(this.shown.run.task)}`
      : `sample ${this.sampleKey.sample}`;
  }

  async start() {
    const { run, sample, epoch } = this.sampleKey;
    this.shown = await this.data.sample(run, sample, epoch, filterOf(this.query));
    this.sampleKey.run = this.shown.run.id;
    visited.sample = sampleAddress(this.sampleKey.run, sample, epoch);
    this.snapshot = JSON.stringify(this.shown);
    this.show();
  }

  // Updates only what changed, so that a playing video goes on.
  async refresh(reviewed = false) {
    const { run, sample, epoch } = this.sampleKey;
    const now = await this.data.sample(run, sample, epoch, filterOf(this.query));
    const snapshot = JSON.stringify(now);
    const typing = document.activeElement?.closest(".review-forms :is(textarea, input)");
    if (snapshot === this.snapshot || (typing && !reviewed)) return;
    const same = JSON.stringify(now.record) === JSON.stringify(this.shown.record);
    this.shown = now;
    this.snapshot = snapshot;
    if (same) this.showAround();
    else this.show();
  }

  show() {
    const { record, drawing } = this.shown;
    const answer = record.score?.answer;
    const trials = trialsOf(answer);
    this.bar = element("div", {});
    this.judged = element("div", {});
    this.reviews = element("div", {});
    fill(
      this.node,
      this.bar,
      this.judged,
      this.reviews,
      ...this.episodes(),
      element(
        "div",
        { class: "two-columns" },
        section("Prompt", { class: "asked" }, promptView(record.sample.input)),
        element(
          "div",
          {},
          trials
            ? section(
                "Execution",
                { class: "trials" },
                trials.map((trial, index) => trialView(trial, index, trials.length)),
              )
            : null,
          section(
            "Output",
            { class: "came-back" },
            record.outputs.length
              ? record.outputs.map((output, index) => outputView(output, index, record.outputs.length))
              : element("p", { class: "soft" }, "None."),
          ),
          drawing && !hasImage(record.sample.input) ? this.canvas(drawing) : null,
        ),
      ),
      this.rest(record, trials),
    );
    this.showAround();
  }

  // Neighbours and reviews, which change while the sample stays.
  showAround() {
    const { run, record, previous, next, position: at, total: all, author, reviews } = this.shown;
    const review = new Review(this.data, author, this.sampleKey, reviews, () => this.refresh(true));
    const to = (neighbour, label, key) =>
      neighbour
        ? link(
            sampleAddress(run.id, neighbour.sample, neighbour.epoch, this.query),
            { class: "button", rel: key === "k" ? "prev" : "next", title: `${label} (${key})` },
            label,
          )
        : element("span", { class: "button none", "aria-disabled": "true" }, label);
    const suffix = isEverything(filterOf(this.query)) ? "" : " found";
    fill(
      this.bar,
      element(
        "p",
        { class: "crumbs" },
        link(this.up(), {}, `${shortTask(run.task)} · ${shortCandidate(run.candidate)}`),
      ),
      element(
        "div",
        { class: "sample-bar" },
        element(
          "h1",
          {},
          record.sample.id,
          record.epoch ? element("span", { class: "soft" }, ` epoch ${record.epoch + 1}`) : null,
        ),
        review.star(),
        element(
          "nav",
          { class: "neighbours", "aria-label": "Samples" },
          to(previous, "← Previous", "k"),
          element(
            "span",
            { class: "figure soft" },
            at === null ? `not one of the ${count(all)}${suffix}` : `${count(at + 1)} of ${count(all)}${suffix}`,
          ),
          to(next, "Next →", "j"),
        ),
      ),
    );
    fill(this.judged, this.verdict(record, trialsOf(record.score?.answer)));
    fill(this.reviews, review.view());
  }

  verdict(record, trials) {
    const { score, error, sample, timing } = record;
    const outcome = error ? "error" : score ? score.outcome : "answered";
    const value = score?.value ?? null;
    const answer =
      trials || score === null || score.answer === null || typeof score.answer === "object"
        ? null
        : asText(score.answer);
    const usage = record.outputs.reduce(
      (sum, { usage: one }) => ({
        input: sum.input + one.input_tokens,
        output: sum.output + one.output_tokens,
        cost: one.cost === null ? sum.cost : (sum.cost ?? 0) + one.cost,
      }),
      { input: 0, output: 0, cost: null },
    );
    const rescored = this.shown.reviews.filter((review) => review.kind === "score");
    return element(
      "div",
      { class: `verdict-panel ${verdictOf(value, outcome)}` },
      element(
        "p",
        { class: "verdict-line" },
        outcomeBadge(value, outcome),
        value === null
          ? null
          : element("span", { class: "figure big" }, number(value, Number.isInteger(value) ? 0 : 3)),
      ),
      facts([
        ["answer", answer === null ? null : element("q", {}, shortened(answer, 300))],
        [
          "expected",
          trials || sample.target === null || sample.target === undefined
            ? null
            : element("q", {}, shortened(asText(sample.target), 300)),
        ],
        ["time", spent(record.outputs.reduce((sum, output) => sum + output.seconds, 0))],
        ["with queueing", spent(timing.ask)],
        ["judging", spent(timing.judge)],
        ["tokens", usage.input + usage.output ? `${count(usage.input)} in, ${count(usage.output)} out` : null],
        ["cost", cost(usage.cost)],
        [
          "people's scores",
          rescored.length
            ? rescored.map((review) => `${number(Number(review.body))} (${review.author})`).join(", ")
            : null,
        ],
      ]),
      score?.why && !trials ? verbatim(score.why, value >= 1 ? "verbatim" : "verbatim fault") : null,
      error
        ? element(
            "div",
            {},
            element("p", {}, element("b", {}, `${error.type}: `), error.message),
            error.where ? verbatim(error.where, "verbatim fault") : null,
          )
        : null,
    );
  }

  canvas(drawing) {
    return section(
      "Drawing",
      { class: "canvas" },
      svgImage(drawing, "The sample as an image"),
      element("p", { class: "soft" }, "The candidate did not see this drawing."),
    );
  }

  // Each attempt at an episode has a folder.
  episodes() {
    const folders = grouped(this.shown.artifacts);
    return [...folders].map(([folder, files]) => {
      const episode = new Episode(this.data, this.sampleKey.run, folder, files);
      return section(
        folders.size > 1 ? `Attempt ${folder.split("-").at(-1)}` : "The episode",
        { class: "episode-section" },
        episode.node,
      );
    });
  }

  rest(record, trials) {
    const { metadata, choices, target } = record.sample;
    const parts = [];
    if (trials && target) parts.push(folded("Reference answer", codeView(asText(target))));
    if (choices.length)
      parts.push(folded(`Choices (${count(choices.length)})`, element("p", {}, choices.join(", "))));
    for (const [key, value] of Object.entries(metadata)) {
      if (onOneLine(value).length > LONG_TEXT) parts.push(folded(key, verbatim(asText(value))));
    }
    const short = Object.entries(metadata).filter(
      ([, value]) => onOneLine(value) && onOneLine(value).length <= LONG_TEXT,
    );
    const sameValue = (key, value) => runAddress(this.shown.run.id, { q: searchFor(key, value) });
    return section(
      "Details",
      { class: "more" },
      facts(
        short.map(([key, value]) => [
          key,
          link(sameValue(key, value), { title: "all samples with this value" }, onOneLine(value)),
        ]),
      ),
      parts,
      folded("Record as JSON", verbatim(JSON.stringify(withoutImages(record), null, 2))),
    );
  }

  up() {
    return runAddress(this.shown?.run.id ?? this.sampleKey.run, this.query);
  }

  key(event) {
    const to = { j: "next", ArrowRight: "next", k: "previous", ArrowLeft: "previous" }[event.key];
    if (to && this.shown) {
      const neighbour = this.shown[to];
      if (neighbour) location.replace(sampleAddress(this.shown.run.id, neighbour.sample, neighbour.epoch, this.query));
      return true;
    }
    if (event.key === "s") {
      this.node.querySelector(".star-button")?.click();
      return true;
    }
    return false;
  }

  close() {}
}

// Times below half a millisecond are left out.
function spent(seconds) {
  return seconds >= 0.0005 ? duration(seconds) : null;
}

function grouped(names) {
  const folders = new Map();
  for (const name of names) {
    const folder = name.split("/")[0];
    folders.set(folder, [...(folders.get(folder) ?? []), name]);
  }
  return folders;
}

// Without the data of images, which are shown above.
function withoutImages(record) {
  return JSON.parse(JSON.stringify(record), (key, value) =>
    value?.type === "image" ? { ...value, data: `(${count(value.data.length)} characters of base64)` } : value,
  );
}
