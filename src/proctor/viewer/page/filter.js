// Which samples of a run are wanted: the filter, as it stands in an address and as it is typed.

const QUOTED = /"((?:[^"]|"")*)"/g; // a quotation mark inside is written twice
const WORD = /(?:[^\s"]|"(?:[^"]|"")*")+/g;
const KEY = /^[\p{L}\p{N}_.-]+$/u; // any other is quoted
const METADATA = /^([\p{L}\p{N}_.-]+|"(?:[^"]|"")+"):(?!\/\/)(.+)$/su;

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
    const found = METADATA.exec(word);
    if (found) metadata[unquoted(found[1])] = unquoted(found[2]);
    else words.push(unquoted(word));
  }
  return { text: words.join(" "), metadata };
}

// What is typed to find all samples with this value.
function searchFor(key, value) {
  const text = onOneLine(value);
  return `${KEY.test(key) ? key : quoted(key)}:${/^\/\/|[\s"]/.test(text) ? quoted(text) : text}`;
}

function quoted(text) {
  return `"${text.replaceAll('"', '""')}"`;
}

function unquoted(text) {
  return text.replace(QUOTED, (_, inside) => inside.replaceAll('""', '"'));
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
