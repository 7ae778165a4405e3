// Elements of the page. Data from a store becomes text nodes and attributes, never HTML.

function element(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    else if (key === "style") for (const [property, to] of Object.entries(value)) node.style.setProperty(property, to);
    else if (key === "value" || key === "checked" || key === "selected") node[key] = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...nonEmpty(children));
  return node;
}

// Replaces all children of an element.
function fill(node, ...children) {
  node.replaceChildren(...nonEmpty(children));
}

// Children may be nested lists, and may be missing.
function nonEmpty(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false && child !== "");
}

// A section with a heading.
function section(title, attributes, ...children) {
  return element("section", attributes, element("h2", {}, title), ...children);
}

function link(address, attributes, ...children) {
  return element("a", { href: address, ...attributes }, ...children);
}

function button(label, act, attributes) {
  return element("button", { type: "button", on: { click: act }, ...attributes }, label);
}

// A list of names and values, without empty values.
function facts(pairs) {
  const present = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return element(
    "dl",
    { class: "facts" },
    present.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))),
  );
}

// Preformatted text.
function verbatim(text, kind) {
  return element("pre", { class: kind ?? "verbatim", tabindex: "0" }, text);
}

function folded(summary, inside, open) {
  return element("details", { open: Boolean(open) }, element("summary", {}, summary), inside);
}

// Images are <img> elements, in which no script runs and nothing is fetched.
function image(mediaType, base64, description, attributes) {
  return element("img", { src: `data:${mediaType};base64,${base64}`, alt: description, ...attributes });
}

function svgImage(source, description, attributes) {
  return element("img", {
    src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source)}`,
    alt: description,
    ...attributes,
  });
}

function isTyping(event) {
  const target = event.target;
  return (
    target instanceof HTMLElement &&
    (target.matches("input:not([type=checkbox]), textarea, select, video") || target.isContentEditable)
  );
}
