// The comparison of runs: differences with intervals, and the samples that flipped.

const FLIPS = [
  ["", "all"],
  ["gained", "better"],
  ["lost", "worse"],
];

class ComparisonPage {
  constructor(data, runs, query) {
    this.data = data;
    this.runs = runs;
    this.query = query;
    this.node = element("div", { class: "view" });
  }

  get title() {
    return this.comparison?.task ? `Comparison · ${shortTask(this.comparison.task)}` : "Comparison";
  }

  async start() {
    this.comparison = await this.data.comparison(this.runs, this.options());
    if (this.comparison.refused) return this.refuse(this.comparison.refused);
    this.competitors = [this.comparison.baseline, ...this.comparison.contrasts.map((contrast) => contrast.competitor)];
    this.sample = element("div", { class: "compared-sample" });
    this.tableOfFlips();
    fill(
      this.node,
      element(
        "h1",
        { title: this.comparison.task },
        shortTask(this.comparison.task),
        element("span", { class: "soft" }, ` version ${this.comparison.version} · ${this.comparison.metric}`),
      ),
      this.scores(),
      ...this.comparison.notes.map((note) => element("p", { class: "soft" }, note)),
      section(
        "Conclusions",
        {},
        this.comparison.conclusions.map((line) => element("p", {}, line)),
      ),
      this.groups(),
      this.plots(),
      this.sample,
      this.flipsSection(),
    );
    if (this.query.sample !== undefined) await this.showSample(Number(this.query.sample));
  }

  options() {
    return { shared: this.query.shared === "1", byId: this.query.by_id === "1" };
  }

  // Shows why runs cannot be compared, and links to options that allow it.
  refuse(reason) {
    const alternatives = [
      [{ shared: "1" }, "Compare only shared samples"],
      [{ shared: "1", by_id: "1" }, "Pair samples by id"],
    ];
    const offered = this.data.live && /--shared|--by-id/.test(reason) ? alternatives : [];
    const message = reason
      .replace(/ To compare only those: --shared\./, "")
      .replace(/; to pair them by id: --by-id\./, ".");
    fill(
      this.node,
      element("h1", {}, "Comparison"),
      element("p", { class: "notice" }, message),
      element(
        "p",
        { class: "actions" },
        offered.map(([query, words]) => link(comparisonAddress(this.runs, { ...this.query, ...query }), {}, words)),
        this.runs.map((run) => link(runAddress(run), {}, `Run ${run}`)),
      ),
    );
  }

  scores() {
    const { baseline, contrasts, metric } = this.comparison;
    const ends = contrasts.flatMap(({ difference }) => [difference.low ?? 0, difference.high ?? 0]).map(Math.abs);
    const reach = Math.max(0.02, ...ends) * 1.1;
    const head = ["", metric, "", "difference", "", "95 % interval", "p", "better", "worse", "pairs"];
    const row = (competitor, contrast) => {
      const score = contrast
        ? { ...competitor.score, value: contrast.second ?? competitor.score.value }
        : competitor.score;
      const difference = contrast?.difference;
      const cell = (style, ...inside) => element("td", { class: style }, ...inside);
      return element(
        "tr",
        {},
        element(
          "th",
          { scope: "row" },
          link(runAddress(competitor.run), {}, competitor.name),
          statusBadge(competitor.status),
          contrast ? null : element("span", { class: "tag" }, "baseline"),
          contrast ? this.rebase(competitor) : null,
        ),
        cell("figure", metricText(score)),
        cell("bar", isShare(competitor.score) ? intervalBar(competitor.score) : null),
        cell("figure", difference ? signed(difference.value) : ""),
        cell("bar", difference && difference.low !== null ? differenceBar(difference, reach) : null),
        cell(
          "figure soft",
          difference && difference.low !== null ? `${signed(difference.low)} – ${signed(difference.high)}` : "",
        ),
        cell(
          "figure",
          contrast
            ? [
                contrast.verdict === "unclear"
                  ? ""
                  : element(
                      "span",
                      { class: `mark ${contrast.verdict === "better" ? "pass" : "fail"}` },
                      contrast.verdict === "better" ? "▲ " : "▼ ",
                    ),
                pText(contrast.p),
              ]
            : "",
        ),
        cell("figure", difference ? count(difference.gained) : ""),
        cell("figure", difference ? count(difference.lost) : ""),
        cell("figure soft", difference ? count(difference.n) : ""),
      );
    };
    return element(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Scores and differences" },
      element(
        "table",
        { class: "metrics compared" },
        element(
          "thead",
          {},
          element(
            "tr",
            {},
            head.map((name, index) => element("th", { scope: "col", class: index && name ? "figure" : null }, name)),
          ),
        ),
        element(
          "tbody",
          {},
          row(baseline),
          contrasts.map((contrast) => row(contrast.competitor, contrast)),
        ),
      ),
    );
  }

  rebase(competitor) {
    if (!this.data.live) return null;
    const others = this.competitors.map(({ run }) => run).filter((run) => run !== competitor.run);
    return [
      " ",
      link(
        comparisonAddress([competitor.run, ...others], { ...this.query, sample: undefined }),
        { class: "small" },
        "as baseline",
      ),
    ];
  }

  groups() {
    const parts = this.comparison.contrasts.flatMap(({ competitor, groups }) =>
      Object.entries(groups).map(([key, values]) => {
        const reach = Math.max(
          0.02,
          ...Object.values(values)
            .flatMap(({ low, high }) => [low ?? 0, high ?? 0])
            .map(Math.abs),
        );
        const rows = Object.entries(values).map(([value, difference]) =>
          element(
            "tr",
            {},
            element("th", { scope: "row" }, value),
            element("td", { class: "figure" }, signed(difference.value)),
            element("td", { class: "bar" }, difference.low === null ? null : differenceBar(difference, reach)),
            element(
              "td",
              { class: "figure soft" },
              difference.low === null ? "" : `${signed(difference.low)} – ${signed(difference.high)}`,
            ),
            element("td", { class: "figure soft wide" }, `n ${count(difference.n)}`),
          ),
        );
        return section(
          `${competitor.name}, by ${key}`,
          {},
          element("table", { class: "metrics" }, element("tbody", {}, rows)),
        );
      }),
    );
    return element("div", { class: "results" }, parts);
  }

  plots() {
    if (!this.data.live) return null;
    const container = element("div", {});
    const show = async (event) => {
      const open = !container.firstChild;
      event.currentTarget.setAttribute("aria-expanded", String(open));
      fill(
        container,
        ...(open
          ? [
              await plotsSection(
                this.data,
                this.competitors.map(({ run }) => run),
              ),
            ]
          : []),
      );
    };
    return element(
      "div",
      {},
      element("p", { class: "actions" }, button("Plots", show, { class: "quiet", "aria-expanded": "false" })),
      container,
    );
  }

  tableOfFlips() {
    const names = this.competitors.map((competitor, index) => [competitor.name, `figure flip${index ? "" : " first"}`]);
    this.table = new VirtualTable({
      label: "Samples that flipped",
      kind: "flips",
      columns: [["", "verdict"], ["Sample", "sample"], ...names],
      fetch: async (start, limit) => ({ total: this.flips.length, lines: this.flips.slice(start, start + limit) }),
      cells: (flip) => this.cells(flip),
      address: (flip) => this.addressOf(flip),
    });
    this.table.node.style.setProperty("--competitors", String(this.competitors.length));
    this.show(this.query.flips ?? "");
  }

  addressOf(flip) {
    return comparisonAddress(this.runs, { ...this.query, sample: flip.sample });
  }

  // Better or worse as in the first run that differs from the baseline.
  cells(flip) {
    const cell = (style, ...inside) => element("div", { class: `cell ${style}`, role: "cell" }, ...inside);
    const direction = flip.better ? "better" : "worse";
    const values = flip.values.map((value, index) =>
      cell(
        `figure flip${index ? "" : " first"}`,
        value === null
          ? "="
          : [verdictMark(verdictOf(value, "")), ` ${number(value, Number.isInteger(value) ? 0 : 2)}`],
      ),
    );
    return [
      cell(
        "verdict",
        element(
          "span",
          { class: `mark ${flip.better ? "pass" : "fail"}`, role: "img", "aria-label": direction, title: direction },
          flip.better ? "▲" : "▼",
        ),
      ),
      cell("sample", link(this.addressOf(flip), { class: "opens" }, flip.sample_id)),
      ...values,
    ];
  }

  flipsSection() {
    const { flips } = this.comparison;
    const kinds = {
      "": flips.length,
      gained: flips.filter(({ better }) => better).length,
      lost: flips.filter(({ better }) => !better).length,
    };
    this.chips = FLIPS.map(([kind, words]) =>
      button(
        [
          { gained: "▲ ", lost: "▼ " }[kind] ?? "",
          `${words} `,
          element("span", { class: "figure" }, count(kinds[kind])),
        ],
        () => this.only(kind),
        { class: "chip", "aria-pressed": String(kind === (this.query.flips ?? "")) },
      ),
    );
    return section(
      "Samples that flipped",
      {},
      flips.length
        ? [
            element("div", { class: "outcomes", role: "group", "aria-label": "Flips: show only" }, this.chips),
            this.table.node,
          ]
        : element("p", { class: "soft" }, "None: the runs agree on every sample."),
    );
  }

  only(kind) {
    this.query = { ...this.query, flips: kind };
    replaceAddress(comparisonAddress(this.runs, this.query));
    FLIPS.forEach(([other], index) => this.chips[index].setAttribute("aria-pressed", String(other === kind)));
    this.show(kind);
  }

  show(kind) {
    this.flips = this.comparison.flips.filter(({ better }) => !kind || better === (kind === "gained"));
    this.table.selected = -1;
    this.table.renew();
  }

  // The outputs for one sample, each with its difference from the baseline's.
  async showSample(sample) {
    const everything = filterOf({});
    const shown = await Promise.all(
      this.competitors.map(({ run }) => this.data.sample(run, sample, 0, everything).catch(() => null)),
    );
    const [base] = shown;
    if (!base) return;
    const textOf = (sample) => sample.record.outputs.map((output) => output.text).join("\n\n");
    const answers = shown.map((other, index) => {
      const { name, run } = this.competitors[index];
      if (!other)
        return element(
          "div",
          { class: "message" },
          element("h3", { class: "role" }, name),
          element("p", { class: "soft" }, "This run has no such sample."),
        );
      const { score, error } = other.record;
      return element(
        "div",
        { class: "message assistant" },
        element(
          "h3",
          { class: "role" },
          link(sampleAddress(run, sample, 0), {}, name),
          outcomeBadge(score?.value ?? null, error ? "error" : (score?.outcome ?? "answered")),
        ),
        error
          ? verbatim(error.message, "verbatim fault")
          : index
            ? differenceView(textOf(base), textOf(other))
            : verbatim(textOf(other)),
        score?.why ? verbatim(score.why, "verbatim fault") : null,
      );
    });
    const index = this.flips.findIndex((flip) => flip.sample === sample);
    const to = (at, label) =>
      at in this.flips
        ? link(this.addressOf(this.flips[at]), { class: "button" }, label)
        : element("span", { class: "button none", "aria-disabled": "true" }, label);
    const target = base.record.sample.target;
    fill(
      this.sample,
      element(
        "div",
        { class: "sample-bar" },
        element("h2", {}, base.record.sample.id),
        element(
          "nav",
          { class: "neighbours", "aria-label": "Samples that flipped" },
          to(index - 1, "← Previous"),
          element(
            "span",
            { class: "figure soft" },
            index < 0 ? "" : `${count(index + 1)} of ${count(this.flips.length)}`,
          ),
          to(index + 1, "Next →"),
        ),
      ),
      element(
        "p",
        { class: "legend soft" },
        "Against the baseline: ",
        element("del", {}, "only in the baseline"),
        " ",
        element("ins", {}, "only in this run"),
      ),
      element("div", { class: "side-by-side" }, answers),
      facts([
        ["expected", target === null || target === undefined ? null : element("q", {}, shortened(asText(target), 600))],
      ]),
      folded(
        "Prompt",
        [
          promptView(base.record.sample.input),
          base.drawing && !hasImage(base.record.sample.input)
            ? svgImage(base.drawing, "The sample as an image", { class: "shown" })
            : null,
        ],
        true,
      ),
    );
    this.table.selected = index;
    this.sampleAt = index;
    this.showing = true;
  }

  // Called after the page is shown.
  arrived() {
    if (this.showing) this.sample.scrollIntoView({ block: "start" });
  }

  key(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? (this.showing ? { j: 1, k: -1 }[event.key] : undefined);
    if (by && this.showing) {
      const flip = this.flips[this.sampleAt + by];
      if (flip) location.replace(this.addressOf(flip));
      return true;
    }
    return this.table ? tableKey(this.table, event) : false;
  }

  up() {
    return this.showing ? comparisonAddress(this.runs, { ...this.query, sample: undefined }) : addressOf([]);
  }

  close() {
    this.table?.close();
  }
}

function signed(value) {
  if (value === null || value === undefined) return NONE;
  return `${value > 0 ? "+" : ""}${number(value)}`;
}

function pText(p) {
  if (p === null || p === undefined) return NONE;
  return p < 0.001 ? "< 0.001" : number(p, p < 0.1 ? 3 : 2);
}

// Positive differences, to the right of zero, favour the second run.
function differenceBar(difference, reach) {
  const bar = intervalBar({ ...difference, method: "" }, [-reach, reach]);
  bar.classList.add(difference.low > 0 ? "surely" : difference.high < 0 ? "surely-not" : "unsure");
  bar.append(element("span", { class: "zero", style: { left: "50%" } }));
  return bar;
}
