// A sample of a run: what was asked, what came back, how it was judged.

const LONG_TEXT = 80; // letters of a value that is folded away

class SamplePage {
  constructor(data, run, sample, epoch, query) {
    this.data = data;
    this.place = { run, sample, epoch };
    this.query = filterQuery(query);
    this.node = element("div", { class: "view sample-page" });
  }

  get title() {
    return this.shown
      ? `${this.shown.record.sample.id} · ${shortTask(this.shown.run.task)}`
      : `sample ${this.place.sample}`;
  }

  async start() {
    const { run, sample, epoch } = this.place;
    this.shown = await this.data.sample(run, sample, epoch, wantedOf(this.query));
    this.place.run = this.shown.run.id;
    visited.sample = sampleAddress(this.place.run, sample, epoch);
    this.kept = JSON.stringify(this.shown);
    this.show();
  }

  // Only what has changed is shown anew: a film that is playing plays on.
  async refresh(written = false) {
    const { run, sample, epoch } = this.place;
    const now = await this.data.sample(run, sample, epoch, wantedOf(this.query));
    const kept = JSON.stringify(now);
    const typing = document.activeElement?.closest(".review-forms :is(textarea, input)");
    if (kept === this.kept || (typing && !written)) return;
    const same = JSON.stringify(now.record) === JSON.stringify(this.shown.record);
    this.shown = now;
    this.kept = kept;
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
        section("What was asked", { class: "asked" }, promptView(record.sample.input)),
        element(
          "div",
          {},
          trials
            ? section(
                "How it ran",
                { class: "trials" },
                trials.map((trial, place) => trialView(trial, place, trials.length)),
              )
            : null,
          section(
            "What came back",
            { class: "came-back" },
            record.outputs.length
              ? record.outputs.map((output, place) => outputView(output, place, record.outputs.length))
              : element("p", { class: "soft" }, "Nothing."),
          ),
          drawing && !hasPicture(record.sample.input) ? this.canvas(drawing) : null,
        ),
      ),
      this.rest(record, trials),
    );
    this.showAround();
  }

  // The way to the neighbours, and what people say: they change while the sample stays.
  showAround() {
    const { run, record, previous, next, position: at, total: all, author, reviews } = this.shown;
    const review = new Review(this.data, author, this.place, reviews, () => this.refresh(true));
    const to = (place, label, key) =>
      place
        ? link(
            sampleAddress(run.id, place.sample, place.epoch, this.query),
            { class: "button", rel: key === "k" ? "prev" : "next", title: `${label} (${key})` },
            label,
          )
        : element("span", { class: "button none", "aria-disabled": "true" }, label);
    const among = isEverything(wantedOf(this.query)) ? "" : " found";
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
            at === null ? `not among the ${count(all)}${among}` : `${count(at + 1)} of ${count(all)}${among}`,
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
        ["with waiting", spent(timing.ask)],
        ["judging", spent(timing.judge)],
        ["tokens", usage.input + usage.output ? `${count(usage.input)} in, ${count(usage.output)} out` : null],
        ["cost", cost(usage.cost)],
        [
          "people say",
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
      "Drawn",
      { class: "canvas" },
      svgPicture(drawing, "The sample as a picture"),
      element("p", { class: "soft" }, "For people: the candidate was not shown this."),
    );
  }

  // Attempts at an episode have a folder each.
  episodes() {
    const folders = grouped(this.shown.artifacts);
    return [...folders].map(([folder, files]) => {
      const episode = new Episode(this.data, this.place.run, folder, files);
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
    if (trials && target) parts.push(folded("A right answer", codeView(asText(target))));
    if (choices.length)
      parts.push(folded(`Possible answers (${count(choices.length)})`, element("p", {}, choices.join(", "))));
    for (const [key, value] of Object.entries(metadata)) {
      if (onOneLine(value).length > LONG_TEXT) parts.push(folded(key, verbatim(asText(value))));
    }
    const short = Object.entries(metadata).filter(
      ([, value]) => onOneLine(value) && onOneLine(value).length <= LONG_TEXT,
    );
    const sameValue = (key, value) => runAddress(this.shown.run.id, { q: searchFor(key, value) });
    return section(
      "More of this sample",
      { class: "more" },
      facts(
        short.map(([key, value]) => [
          key,
          link(sameValue(key, value), { title: "all samples with this value" }, onOneLine(value)),
        ]),
      ),
      parts,
      folded("The whole record", verbatim(JSON.stringify(withoutPictures(record), null, 2))),
    );
  }

  up() {
    return runAddress(this.shown?.run.id ?? this.place.run, this.query);
  }

  key(event) {
    const to = { j: "next", ArrowRight: "next", k: "previous", ArrowLeft: "previous" }[event.key];
    if (to && this.shown) {
      const place = this.shown[to];
      if (place) location.replace(sampleAddress(this.shown.run.id, place.sample, place.epoch, this.query));
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

// Too short a time says nothing.
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

// Pictures are shown above; here their data would bury everything else.
function withoutPictures(record) {
  return JSON.parse(JSON.stringify(record), (key, value) =>
    value?.type === "image" ? { ...value, data: `(${count(value.data.length)} letters of base64)` } : value,
  );
}
