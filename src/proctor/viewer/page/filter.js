// The filter of samples: read from an address, and from the text of a search.

const QUOTED = /"((?:[^"]|"")*)"/g; // a quotation mark inside is written twice
const WORD = /(?:[^\s"]|"(?:[^"]|"")*")+/g;
const KEY = /^[\p{L}\p{N}_.-]+$/u; // any other is quoted
const METADATA = /^([\p{L}\p{N}_.-]+|"(?:[^"]|"")+"):(?!\/\/)(.+)$/su;

// Reads the query of an address: {outcome, q, starred, commented}.
function filterOf(query) {
  const { text, metadata } = readSearch(query.q ?? "");
  return {
    outcome: query.outcome ?? "",
    text,
    metadata,
    starred: query.starred === "1",
    commented: query.commented === "1",
  };
}

// key:value filters by metadata; all other words are searched; quotation marks group words.
function readSearch(typed) {
  const words = [];
  const metadata = {};
  for (const word of typed.match(WORD) ?? []) {
    const pair = METADATA.exec(word);
    if (pair) metadata[unquoted(pair[1])] = unquoted(pair[2]);
    else words.push(unquoted(word));
  }
  return { text: words.join(" "), metadata };
}

// The search for all samples with this value.
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

function isEverything(filter) {
  return (
    !filter.outcome && !filter.text && !filter.starred && !filter.commented && !Object.keys(filter.metadata).length
  );
}
