// The page: shows the view of the address, refreshes it, and handles keys.

const POLL_INTERVAL = 1000; // milliseconds between checks of the store
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
    this.scrollPositions = new Map(); // by address
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
    const view = (VIEWS[address.parts[0] ?? ""] ?? (() => new NotFoundPage()))(
      this.data,
      address.parts.slice(1),
      address.query,
    );
    this.nextView = view;
    let shown = view;
    try {
      await view.start();
    } catch (error) {
      shown = new ErrorPage(error.message);
    }
    if (this.nextView !== view) return view.close();
    this.view?.close();
    this.view = shown;
    this.address = null; // ignore scrolling by the browser meanwhile
    fill(this.main, shown.node);
    document.title = `${shown.title} – Proctor`;
    for (const way of document.querySelectorAll(".masthead nav a")) {
      way.toggleAttribute(
        "aria-current",
        way.getAttribute("href") === `#/${address.parts[0] === "tasks" ? "tasks" : ""}`,
      );
    }
    shown.table?.draw();
    scrollTo(0, this.scrollPositions.get(location.hash) ?? 0);
    shown.table?.draw();
    shown.arrived?.();
    if (this.hasShown) this.main.focus({ preventScroll: true }); // for screen readers
    this.hasShown = true;
    this.address = location.hash;
    document.documentElement.dataset.shown = location.hash;
  }

  remember() {
    if (this.address === location.hash) this.scrollPositions.set(this.address, scrollY);
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

  // Polls for changes while the page is visible.
  async watch(first) {
    let { mark } = await first.catch(() => ({}));
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL));
      if (document.hidden) continue;
      try {
        const { mark: now } = await this.data.changes();
        if (now !== mark) await this.view?.refresh?.();
        mark = now;
        this.showStatus("");
      } catch {
        this.showStatus("The server does not answer: the page may be out of date.");
      }
    }
  }

  showStatus(words) {
    if (this.live.textContent !== words) this.live.textContent = words;
  }
}

class ErrorPage {
  title = "Error";

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

class NotFoundPage extends ErrorPage {
  constructor() {
    super("There is no such page.");
  }

  async start() {}
}

// The token is in a cookie now: remove it from the address.
if (location.search) history.replaceState(null, "", location.pathname + location.hash);
const exported = document.querySelector("meta[name=proctor-data]").content === "files";
const page = new Page(exported ? new FileData() : new ServerData());
// Started before the first read, so that no change is missed.
if (!exported) page.watch(page.data.changes());
page.show();
