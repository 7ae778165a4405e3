// Addresses: every view has one after the #, which works without a server.

function currentAddress() {
  const [path, query] = location.hash.replace(/^#/, "").split("?", 2);
  return {
    parts: path.split("/").filter(Boolean).map(decoded),
    query: Object.fromEntries(new URLSearchParams(query ?? "")),
  };
}

// A typed address may be malformed.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function addressOf(parts, query) {
  const parameters = Object.entries(query ?? {}).filter(
    ([, value]) => value !== undefined && value !== null && value !== "" && value !== false,
  );
  const search = new URLSearchParams(
    parameters.map(([key, value]) => [key, value === true ? "1" : String(value)]),
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

// Changes the address without a new history entry.
function replaceAddress(address) {
  history.replaceState(null, "", address);
}

// The last visited run and sample, which the lists mark.
const visited = { run: null, sample: null };
