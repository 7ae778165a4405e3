// Metrics with their intervals, as text and as bars.

function metricText(metric) {
  if (!metric || metric.value === null) return NONE;
  return metric.method === "count" ? count(metric.value) : number(metric.value, digitsFor(metric.value));
}

function intervalText(metric) {
  if (!metric || metric.low === null || metric.high === null) return "";
  const digits = digitsFor(Math.max(Math.abs(metric.low), Math.abs(metric.high)));
  return `${number(metric.low, digits)} – ${number(metric.high, digits)}`;
}

function digitsFor(value) {
  return Math.abs(value) >= 100 ? 1 : Math.abs(value) >= 10 ? 2 : 3;
}

function isShare(metric) {
  return metric.low !== null && metric.high !== null && metric.value !== null && metric.low >= 0 && metric.high <= 1;
}

// The interval on a scale, by default from 0 to 1.
function intervalBar(metric, scale = [0, 1]) {
  const [from, to] = scale;
  const share = (value) => `${(100 * (Math.min(Math.max(value, from), to) - from)) / (to - from || 1)}%`;
  const bar = element("span", {
    class: "interval",
    role: "img",
    "aria-label": `95 % interval ${intervalText(metric)}`,
  });
  if (metric.low !== null && metric.high !== null) {
    const width = `${(100 * (Math.min(metric.high, to) - Math.max(metric.low, from))) / (to - from || 1)}%`;
    bar.append(element("span", { class: "range", style: { left: share(metric.low), width } }));
  }
  if (metric.value !== null) bar.append(element("span", { class: "point", style: { left: share(metric.value) } }));
  return bar;
}

// A common scale: 0 to 1 for shares, else the range of all values.
function scaleOf(metrics) {
  const ends = metrics
    .flatMap((metric) => [metric.low, metric.high, metric.value])
    .filter((end) => end !== null && end !== undefined);
  if (!ends.length) return [0, 1];
  if (metrics.every(isShare)) return [0, 1];
  return [Math.min(...ends), Math.max(...ends)];
}

function metricsTable(metrics, caption) {
  const rows = Object.entries(metrics).map(([name, metric]) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, name),
      element("td", { class: "figure" }, metricText(metric)),
      element("td", { class: "bar" }, isShare(metric) ? intervalBar(metric) : null),
      element("td", { class: "figure soft" }, intervalText(metric)),
      element("td", { class: "figure soft wide" }, metric.n ? `n ${count(metric.n)}` : ""),
      element("td", { class: "soft wide" }, intervalText(metric) ? metric.method : ""),
    ),
  );
  return element(
    "table",
    { class: "metrics" },
    element("caption", { class: "unseen" }, caption),
    element("tbody", {}, rows),
  );
}
