// Elements of the page. What comes from a store becomes text nodes and attributes: nothing here reads HTML.

function element(name, attributes, ...children) {
  return furnish(document.createElement(name), attributes, children);
}

function drawn(name, attributes, ...children) {
  return furnish(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function furnish(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    else if (key === "style") for (const [property, to] of Object.entries(value)) made.style.setProperty(property, to);
    else if (key === "value" || key === "checked" || key === "selected") made[key] = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...present(children));
  return made;
}

// Puts these in the place of all that an element holds.
function fill(node, ...children) {
  node.replaceChildren(...present(children));
}

// Parts may come in lists, and may be missing.
function present(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false && child !== "");
}

// A part of the page under its heading.
function section(title, attributes, ...children) {
  return element("section", attributes, element("h2", {}, title), ...children);
}

function link(address, attributes, ...children) {
  return element("a", { href: address, ...attributes }, ...children);
}

function button(label, act, attributes) {
  return element("button", { type: "button", on: { click: act }, ...attributes }, label);
}

// Pairs of a name and what there is to say, where there is something.
function facts(pairs) {
  const told = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return element(
    "dl",
    { class: "facts" },
    told.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))),
  );
}

// Text as it was written, in lines.
function verbatim(text, kind) {
  return element("pre", { class: kind ?? "verbatim", tabindex: "0" }, text);
}

function folded(summary, inside, open) {
  return element("details", { open: Boolean(open) }, element("summary", {}, summary), inside);
}

// A picture that cannot do anything: in an <img> nothing runs and nothing is fetched.
function picture(mediaType, base64, description, attributes) {
  return element("img", { src: `data:${mediaType};base64,${base64}`, alt: description, ...attributes });
}

function svgPicture(source, description, attributes) {
  return element("img", {
    src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source)}`,
    alt: description,
    ...attributes,
  });
}

function isTyping(event) {
  const place = event.target;
  return (
    place instanceof HTMLElement &&
    (place.matches("input:not([type=checkbox]), textarea, select, video") || place.isContentEditable)
  );
}
