// Which samples of a run are wanted: the filter, as it stands in an address and as it is typed.

const WORD = /(?:[^\s"]|"[^"]*")+/g;
const METADATA = /^([\w.-]+):(?!\/\/)(.+)$/;

// From the query of an address: {outcome, q, starred, commented}.
function wantedOf(query) {
  const { text, metadata } = readSearch(query.q ?? "");
  return {
    outcome: query.outcome ?? "",
    text,
    metadata,
    starred: query.starred === "1",
    commented: query.commented === "1",
  };
}

// Words are searched for as they stand; key:value asks the metadata; quotation marks hold words together.
function readSearch(typed) {
  const words = [];
  const metadata = {};
  for (const word of typed.match(WORD) ?? []) {
    const found = word.startsWith('"') ? null : METADATA.exec(word);
    if (found) metadata[found[1]] = found[2].replaceAll('"', "");
    else words.push(word.replaceAll('"', ""));
  }
  return { text: words.join(" "), metadata };
}

// What is typed to find all samples with this value.
function searchFor(key, value) {
  const text = onOneLine(value);
  return `${key}:${/\s/.test(text) ? `"${text}"` : text}`;
}

function filterQuery(query) {
  const { outcome, q, starred, commented } = query;
  return { outcome, q, starred, commented };
}

function isEverything(wanted) {
  return (
    !wanted.outcome && !wanted.text && !wanted.starred && !wanted.commented && !Object.keys(wanted.metadata).length
  );
}
