// The difference of two texts: common, deleted and inserted parts.

const MOST_WORDS = 3000; // longer texts are compared line by line

function differenceView(before, after) {
  const parts = differences(before, after);
  const names = { same: "span", deleted: "del", inserted: "ins" };
  return element(
    "pre",
    { class: "verbatim difference", tabindex: "0" },
    parts.map(([kind, text]) => element(names[kind], {}, text)),
  );
}

// [kind, text] in order; kind is same, deleted or inserted.
function differences(before, after) {
  const words = (text) => text.match(/\s+|[\p{L}\p{N}_]+|./gsu) ?? [];
  const lines = (text) => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const [a, b] = [words(before), words(after)];
  return a.length > MOST_WORDS || b.length > MOST_WORDS ? compared(lines(before), lines(after)) : compared(a, b);
}

function compared(a, b) {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let [aEnd, bEnd] = [a.length, b.length];
  while (aEnd > start && bEnd > start && a[aEnd - 1] === b[bEnd - 1]) [aEnd, bEnd] = [aEnd - 1, bEnd - 1];
  const parts = [];
  const add = (kind, text) => {
    if (!text) return;
    if (parts.at(-1)?.[0] === kind) parts.at(-1)[1] += text;
    else parts.push([kind, text]);
  };
  add("same", a.slice(0, start).join(""));
  for (const [kind, piece] of middle(a.slice(start, aEnd), b.slice(start, bEnd))) add(kind, piece);
  add("same", a.slice(aEnd).join(""));
  return parts;
}

// The longest common subsequence, unless the texts are too long.
function middle(a, b) {
  if (a.length * b.length > MOST_WORDS * MOST_WORDS)
    return [
      ["deleted", a.join("")],
      ["inserted", b.join("")],
    ];
  const width = b.length + 1;
  const common = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] =
        a[i] === b[j]
          ? common[(i + 1) * width + j + 1] + 1
          : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  const parts = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) [parts[parts.length], i, j] = [["same", a[i]], i + 1, j + 1];
    else if (i < a.length && (j === b.length || common[(i + 1) * width + j] >= common[i * width + j + 1]))
      parts.push(["deleted", a[i++]]);
    else parts.push(["inserted", b[j++]]);
  }
  return parts;
}
