// Verdicts of samples, with a sign besides the colour.

const VERDICTS = {
  pass: { sign: "✓", words: "passed" },
  fail: { sign: "✗", words: "failed" },
  partly: { sign: "◐", words: "partly right" },
  error: { sign: "!", words: "error" },
  unparsed: { sign: "?", words: "unparsed" },
  truncated: { sign: "…", words: "truncated" },
  none: { sign: "○", words: "no score" },
};

function verdictOf(value, outcome) {
  if (["error", "unparsed", "truncated"].includes(outcome)) return outcome;
  if (value === null || value === undefined) return "none";
  return value >= 1 ? "pass" : value <= 0 ? "fail" : "partly";
}

function verdictMark(verdict) {
  const { sign, words } = VERDICTS[verdict];
  return element("span", { class: `mark ${verdict}`, role: "img", "aria-label": words, title: words }, sign);
}

function outcomeBadge(value, outcome) {
  const verdict = verdictOf(value, outcome);
  return element(
    "span",
    { class: `badge ${verdict}` },
    element("span", { "aria-hidden": "true" }, VERDICTS[verdict].sign),
    ` ${outcome}`,
  );
}

const STATUS_WORDS = {
  running: "in progress",
  done: "",
  failed: "failed",
  interrupted: "interrupted",
  killed: "killed",
};

function statusBadge(status) {
  const words = STATUS_WORDS[status] ?? status;
  return words ? element("span", { class: `status ${status}` }, words) : null;
}
