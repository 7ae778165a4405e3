// The page itself: shows what the address names, keeps it up to date, and hears the keys.

const PERIOD = 1000; // milliseconds between two looks whether the store has changed
const VIEWS = {
  "": (data, parts, query) => new RunList(data, query),
  run: (data, [run, sample, epoch], query) =>
    sample === undefined
      ? new RunPage(data, run, query)
      : new SamplePage(data, run, Number(sample), Number(epoch ?? 0), query),
  compare: (data, runs, query) => new ComparisonPage(data, runs, query),
  tasks: (data, [task]) => (task === undefined ? new TaskList(data) : new LeaderboardPage(data, task)),
};

class Page {
  constructor(data) {
    this.data = data;
    this.main = document.getElementById("content");
    this.live = document.querySelector(".live");
    this.places = new Map(); // address → where it was left
    addEventListener("hashchange", () => this.show());
    addEventListener("keydown", (event) => this.key(event));
    document.querySelector(".keys-button").addEventListener("click", keysDialog);
    document.querySelector("[data-skip]").addEventListener("click", (event) => {
      event.preventDefault();
      this.main.focus();
    });
    document.addEventListener("scroll", () => this.remember(), { passive: true });
    history.scrollRestoration = "manual";
  }

  async show() {
    const address = currentAddress();
    const view = (VIEWS[address.parts[0] ?? ""] ?? (() => new Missing()))(
      this.data,
      address.parts.slice(1),
      address.query,
    );
    this.coming = view;
    let shown = view;
    try {
      await view.start();
    } catch (error) {
      shown = new Trouble(error.message);
    }
    if (this.coming !== view) return view.close();
    this.view?.close();
    this.view = shown;
    this.address = null; // what the browser scrolls by itself meanwhile is nobody's place
    fill(this.main, shown.node);
    document.title = `${shown.title} – Proctor`;
    for (const way of document.querySelectorAll(".masthead nav a")) {
      way.toggleAttribute(
        "aria-current",
        way.getAttribute("href") === `#/${address.parts[0] === "tasks" ? "tasks" : ""}`,
      );
    }
    shown.table?.draw();
    scrollTo(0, this.places.get(location.hash) ?? 0);
    shown.table?.draw();
    shown.arrived?.();
    if (this.shownBefore) this.main.focus({ preventScroll: true }); // what has changed is what is read next
    this.shownBefore = true;
    this.address = location.hash;
    document.documentElement.dataset.shown = location.hash;
  }

  remember() {
    if (this.address === location.hash) this.places.set(this.address, scrollY);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (isTyping(event)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const taken = this.view?.key?.(event) || this.ownKey(event.key);
    if (taken) event.preventDefault();
  }

  ownKey(key) {
    if (key === "?") keysDialog();
    else if (key === "/") document.querySelector("[data-search]")?.focus();
    else if ((key === "u" || key === "Escape") && this.view?.up) location.hash = this.view.up();
    else return false;
    return true;
  }

  // Asks whether anything has changed as long as somebody can see it.
  async watch(first) {
    let { mark } = await first.catch(() => ({}));
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, PERIOD));
      if (document.hidden) continue;
      try {
        const { mark: now } = await this.data.changes();
        if (now !== mark) await this.view?.refresh?.();
        mark = now;
        this.tell("");
      } catch {
        this.tell("The server does not answer: this is what was last known.");
      }
    }
  }

  tell(words) {
    if (this.live.textContent !== words) this.live.textContent = words;
  }
}

class Trouble {
  title = "Trouble";

  constructor(message) {
    this.node = element(
      "div",
      { class: "view" },
      element("h1", {}, "This cannot be shown"),
      element("p", { class: "notice" }, message),
      element("p", {}, link(addressOf([]), {}, "All runs")),
    );
  }

  close() {}
}

class Missing extends Trouble {
  constructor() {
    super("There is no such page.");
  }

  async start() {}
}

// The token has become a cookie: it need not stand where it can be read over a shoulder.
if (location.search) history.replaceState(null, "", location.pathname + location.hash);
const exported = document.querySelector("meta[name=proctor-data]").content === "files";
const page = new Page(exported ? new FileData() : new ServerData());
// Asked before anything is read: what changes from then on is seen.
if (!exported) page.watch(page.data.changes());
page.show();
