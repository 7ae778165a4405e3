// Outputs of a candidate: texts, programs with their verdicts, turns of an episode.

const TURNS_SHOWN = 500;

function outputView(output, index, total) {
  const object = readObject(output.text);
  return element(
    "div",
    { class: "message assistant" },
    element("h3", { class: "role" }, total > 1 ? `output ${index + 1} of ${total}` : "output"),
    object ? objectTable({ ...object, turns: undefined }) : output.text ? verbatim(output.text) : element("p", { class: "soft" }, "(empty)"),
    Array.isArray(object?.turns) && object.turns.length ? turnsView(object.turns) : null,
    outputFacts(output, total === 1),
  );
}

// The turns of a vision model in a window: prompt, reply, pressed keys.
function turnsView(turns) {
  const unreadable = turns.filter((turn) => turn.reply !== null && !turn.readable).length;
  return element(
    "details",
    { class: "turns", open: true },
    element(
      "summary",
      {},
      `${plural(turns.length, "turn")}${unreadable ? `, ${plural(unreadable, "unreadable reply", "unreadable replies")}` : ""}`,
    ),
    element(
      "ol",
      {},
      turns.slice(0, TURNS_SHOWN).map((turn) =>
        element(
          "li",
          {},
          folded(`prompt, with ${turn.frame || "a frame"}`, verbatim(turn.prompt)),
          turn.reply === null ? element("p", { class: "soft" }, "(no reply)") : verbatim(turn.reply || "(empty)"),
          facts([
            ["pressed", turn.readable ? turn.pressed.map(pressedText).join(", ") || "nothing" : null],
            ["read", turn.reply !== null && !turn.readable ? "unreadable" : null],
            ["time", turn.seconds ? duration(turn.seconds) : null],
            ["tokens", `${count(turn.usage.input_tokens)} in, ${count(turn.usage.output_tokens)} out`],
            ["ended by", turn.finish === "stop" ? null : turn.finish],
          ]),
        ),
      ),
    ),
    turns.length > TURNS_SHOWN
      ? element("p", { class: "soft" }, `The first ${count(TURNS_SHOWN)} are shown; all are in the export.`)
      : null,
  );
}

function pressedText({ keys, seconds }) {
  return `${keys.join("+") || "no key"} for ${number(seconds)} s`;
}

// The verdict shows the time, tokens and cost of a single output.
function outputFacts({ usage, seconds, finish, attempts, cached }, alone) {
  const tokens = usage.input_tokens + usage.output_tokens;
  return facts([
    ["time", seconds && !alone ? duration(seconds) : null],
    ["tokens", tokens && !alone ? `${count(usage.input_tokens)} in, ${count(usage.output_tokens)} out` : null],
    ["cost", alone ? null : cost(usage.cost)],
    ["ended by", finish === "stop" ? null : finish],
    ["attempts", attempts > 1 ? String(attempts) : null],
    ["cached", cached ? "yes" : null],
  ]);
}

// The output of an agent is a JSON object, shown as a table.
function readObject(text) {
  if (!text.startsWith("{")) return null;
  try {
    const object = JSON.parse(text);
    return object && typeof object === "object" ? object : null;
  } catch {
    return null;
  }
}

function objectTable(object) {
  const rows = flattened(object).filter(([, value]) => value !== null && value !== "" && value !== undefined);
  return element(
    "table",
    { class: "pairs" },
    element(
      "tbody",
      {},
      rows.map(([key, value]) => element("tr", {}, element("th", { scope: "row" }, key), element("td", {}, value))),
    ),
  );
}

// Flattens one level; deeper objects are shown as JSON.
function flattened(object, before = "") {
  return Object.entries(object).flatMap(([key, value]) => {
    if (value && typeof value === "object" && !Array.isArray(value)) {
      const inside = Object.entries(value);
      if (!before && inside.length && inside.every(([, deeper]) => deeper === null || typeof deeper !== "object"))
        return flattened(value, `${key}.`);
      if (!inside.length) return [];
      return [
        [
          `${before}${key}`,
          folded(plural(inside.length, "entry", "entries"), verbatim(JSON.stringify(value, null, 1))),
        ],
      ];
    }
    if (typeof value === "number") return [[`${before}${key}`, Number.isInteger(value) ? count(value) : number(value)]];
    return [[`${before}${key}`, typeof value === "string" ? value : JSON.stringify(value)]];
  });
}

// The trials of an answer: a list of them, or a list of generations with trials beside it.
function trialsOf(answer) {
  if (
    Array.isArray(answer) &&
    answer.length &&
    answer.every((trial) => trial && typeof trial === "object" && "generation" in trial)
  )
    return answer;
  if (answer && Array.isArray(answer.generations)) {
    const trials = answer.trials ?? [];
    return answer.generations.map((generation, index) => ({
      ...(trials.length === answer.generations.length ? trials[index] : {}),
      generation,
    }));
  }
  return null;
}

function trialView(trial, index, total) {
  const passed = trial.passed ?? (trial.outcome ? trial.outcome === "passed" : null);
  const heading = total > 1 ? `program ${index + 1} of ${total}` : "program";
  return element(
    "div",
    { class: "trial" },
    element(
      "h3",
      { class: "role" },
      heading,
      " ",
      trial.outcome ? outcomeBadge(passed === null ? null : passed ? 1 : 0, trial.outcome) : null,
    ),
    codeView(trial.generation),
    trial.detail
      ? element("div", { class: "detail" }, element("h4", {}, "output"), verbatim(trial.detail, "verbatim fault"))
      : null,
    trial.reading !== null && trial.reading !== undefined
      ? element("div", { class: "detail" }, element("h4", {}, "extracted answer"), verbatim(asText(trial.reading)))
      : null,
    facts([
      ["time", trial.seconds ? duration(trial.seconds) : null],
      ["tests", trial.testing],
    ]),
  );
}

// Numbered lines; copied text has no numbers.
function codeView(source) {
  const lines = source.replace(/\n$/, "").split("\n");
  return element(
    "pre",
    { class: "verbatim code", tabindex: "0" },
    lines.map((line) => element("span", { class: "line" }, `${line}\n`)),
  );
}
