// What came back, and what was made of it: texts, programs with their verdicts, episodes.

const TURNS_SHOWN = 500;

function outputView(output, place, all) {
  const told = readObject(output.text);
  return element(
    "div",
    { class: "message assistant" },
    element("h3", { class: "role" }, all > 1 ? `answer ${place + 1} of ${all}` : "answer"),
    told ? objectTable({ ...told, turns: undefined }) : output.text ? verbatim(output.text) : element("p", { class: "soft" }, "(nothing)"),
    Array.isArray(told?.turns) && told.turns.length ? turnsView(told.turns) : null,
    outputFacts(output, all === 1),
  );
}

// What a model was asked in a window, what it replied, and what was pressed for it.
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
          turn.reply === null ? element("p", { class: "soft" }, "(no reply)") : verbatim(turn.reply || "(nothing)"),
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

// What a single answer took stands above it, with the verdict.
function outputFacts({ usage, seconds, finish, attempts, cached }, alone) {
  const tokens = usage.input_tokens + usage.output_tokens;
  return facts([
    ["time", seconds && !alone ? duration(seconds) : null],
    ["tokens", tokens && !alone ? `${count(usage.input_tokens)} in, ${count(usage.output_tokens)} out` : null],
    ["cost", alone ? null : cost(usage.cost)],
    ["ended by", finish === "stop" ? null : finish],
    ["tries", attempts > 1 ? String(attempts) : null],
    ["cached", cached ? "yes" : null],
  ]);
}

// What agents leave is an object in JSON, for people a table.
function readObject(text) {
  if (!text.startsWith("{")) return null;
  try {
    const told = JSON.parse(text);
    return told && typeof told === "object" ? told : null;
  } catch {
    return null;
  }
}

function objectTable(told) {
  const rows = flattened(told).filter(([, value]) => value !== null && value !== "" && value !== undefined);
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

// One level of names deep; what lies deeper is shown as it is written.
function flattened(told, before = "") {
  return Object.entries(told).flatMap(([key, value]) => {
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

// Programs that were run: as a list of trials, or beside the generations that a task counted itself.
function trialsOf(answer) {
  if (
    Array.isArray(answer) &&
    answer.length &&
    answer.every((trial) => trial && typeof trial === "object" && "generation" in trial)
  )
    return answer;
  if (answer && Array.isArray(answer.generations)) {
    const trials = answer.trials ?? [];
    return answer.generations.map((generation, place) => ({
      ...(trials.length === answer.generations.length ? trials[place] : {}),
      generation,
    }));
  }
  return null;
}

function trialView(trial, place, all) {
  const passed = trial.passed ?? (trial.outcome ? trial.outcome === "passed" : null);
  const heading = all > 1 ? `program ${place + 1} of ${all}` : "program";
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
      ? element("div", { class: "detail" }, element("h4", {}, "what it said"), verbatim(trial.detail, "verbatim fault"))
      : null,
    trial.reading !== null && trial.reading !== undefined
      ? element("div", { class: "detail" }, element("h4", {}, "what was read off it"), verbatim(asText(trial.reading)))
      : null,
    facts([
      ["time", trial.seconds ? duration(trial.seconds) : null],
      ["tests", trial.testing],
    ]),
  );
}

// Numbered lines; the numbers are not part of what is copied.
function codeView(source) {
  const lines = source.replace(/\n$/, "").split("\n");
  return element(
    "pre",
    { class: "verbatim code", tabindex: "0" },
    lines.map((line) => element("span", { class: "line" }, `${line}\n`)),
  );
}
