// Numbers, durations and times as text.

const MINUS = "−";
const NONE = "–";

function number(value, digits = 3) {
  if (value === null || value === undefined) return NONE;
  return value
    .toLocaleString("en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits })
    .replace("-", MINUS);
}

function count(value) {
  return value === null || value === undefined ? NONE : value.toLocaleString("en-GB");
}

function plural(n, one, many) {
  return `${count(n)} ${n === 1 ? one : (many ?? `${one}s`)}`;
}

// With about three digits: 12 ms, 3.4 s, 5 min 12 s, 3 h 5 min.
function duration(seconds) {
  if (seconds === null || seconds === undefined) return NONE;
  if (seconds < 0.9995) return `${number(seconds * 1000, seconds < 0.00995 ? 1 : 0)} ms`;
  if (seconds < 59.95) return `${number(seconds, 1)} s`;
  const minutes = Math.round(seconds / 60);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

// Minutes and seconds of a video.
function position(seconds) {
  const whole = Math.max(0, seconds);
  return `${Math.floor(whole / 60)}:${(whole % 60).toFixed(1).padStart(4, "0")}`;
}

function moment(seconds) {
  const date = new Date(seconds * 1000);
  return `${day(seconds)} ${twoDigits(date.getHours())}:${twoDigits(date.getMinutes())}`;
}

// In the local time zone, in the format of a date field.
function day(seconds) {
  const date = new Date(seconds * 1000);
  return `${date.getFullYear()}-${twoDigits(date.getMonth() + 1)}-${twoDigits(date.getDate())}`;
}

function twoDigits(value) {
  return String(value).padStart(2, "0");
}

function cost(value) {
  return value === null || value === undefined ? null : number(value, value && value < 0.01 ? 6 : 4);
}

// Any value of a record as text.
function asText(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

// Any value as one line, in the format of the store.
function onOneLine(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function shortened(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
