// Addresses: everything that can be shown has one, after the #, so that a file needs no server for it.

function currentAddress() {
  const [path, query] = location.hash.replace(/^#/, "").split("?", 2);
  return {
    parts: path.split("/").filter(Boolean).map(decoded),
    query: Object.fromEntries(new URLSearchParams(query ?? "")),
  };
}

// What somebody typed may be no code of anything.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function addressOf(parts, query) {
  const told = Object.entries(query ?? {}).filter(
    ([, value]) => value !== undefined && value !== null && value !== "" && value !== false,
  );
  const search = new URLSearchParams(
    told.map(([key, value]) => [key, value === true ? "1" : String(value)]),
  ).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${search ? `?${search}` : ""}`;
}

function runAddress(run, query) {
  return addressOf(["run", run], query);
}

function sampleAddress(run, sample, epoch, query) {
  return addressOf(epoch ? ["run", run, sample, epoch] : ["run", run, sample], query);
}

function taskAddress(task) {
  return addressOf(["tasks", task]);
}

function comparisonAddress(runs, query) {
  return addressOf(["compare", ...runs], query);
}

// Changes the address in place: no new entry in the history for every letter of a search.
function replaceAddress(address) {
  history.replaceState(null, "", address);
}

// Where the reader was last: the list marks it, and goes on from there.
const visited = { run: null, sample: null };
