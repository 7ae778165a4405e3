// An episode: its video and its events. A click on an event seeks in the video.

const EVENTS_SHOWN = 2000;
const FRAME = /\/frame-\d+\.png$/;

class Episode {
  constructor(data, run, folder, files) {
    this.videoName = files.find((name) => name.endsWith(".mp4") || name.endsWith(".webm"));
    this.log = files.find((name) => name.endsWith("events.jsonl"));
    this.node = element("div", { class: "episode" });
    this.aside = element("div", { class: "happened" });
    if (this.videoName) {
      this.video = element("video", {
        controls: true,
        preload: "auto",
        muted: true,
        src: data.file(run, this.videoName),
        "aria-label": `Video of ${folder}`,
        tabindex: "0",
      });
      this.node.classList.add("with-video");
      this.node.append(this.video);
    }
    this.node.append(this.aside);
    const rest = files.filter((name) => name !== this.videoName);
    const links = (names) =>
      names.flatMap((name, index) => [
        index ? ", " : "",
        link(data.file(run, name), { target: "_blank", rel: "noopener" }, name.split("/").at(-1)),
      ]);
    // A model may have been shown hundreds of frames.
    const frames = rest.filter((name) => FRAME.test(name));
    const others = rest.filter((name) => !FRAME.test(name));
    this.files = element(
      "div",
      { class: "soft files" },
      element("p", {}, "Files: ", links(others)),
      frames.length ? folded(plural(frames.length, "frame"), element("p", {}, links(frames))) : null,
    );
    this.ready = this.log ? this.showEvents(data, run) : Promise.resolve();
    this.node.append(this.files);
  }

  async showEvents(data, run) {
    const { events, length, by_step: byStep, left_out: leftOut } = await data.events(run, this.log);
    this.length = length;
    this.byStep = byStep;
    this.track = element(
      "div",
      { class: "track" },
      this.lanes(events),
      (this.playhead = element("div", { class: "playhead", hidden: !this.video })),
    );
    const rows = events.slice(0, EVENTS_SHOWN).map((event) =>
      element(
        "li",
        {},
        button(
          [
            byStep ? null : element("span", { class: "figure" }, position(event.at)),
            element("b", {}, event.what),
            event.more ? element("span", { class: "soft" }, ` ${event.more}`) : null,
          ],
          () => this.jump(event.at),
          { class: "event", disabled: !this.video },
        ),
      ),
    );
    const more =
      events.length > EVENTS_SHOWN ? ` The first ${count(EVENTS_SHOWN)} are listed; all are in the file.` : "";
    this.aside.append(
      element(
        "h3",
        { class: "role" },
        byStep ? plural(length, "step") : `${plural(events.length, "event")} in ${duration(length)}`,
      ),
      this.track,
      element("ol", { class: "events", tabindex: "0", "aria-label": "Events" }, rows),
      leftOut || more
        ? element(
            "p",
            { class: "soft" },
            leftOut ? `${count(leftOut)} frames that the agent captured are left out.` : "",
            more,
          )
        : "",
    );
    if (this.video) this.video.addEventListener("timeupdate", () => this.follow());
  }

  // A lane for each key and action, and one lane for all other events.
  lanes(events) {
    const names = [...new Set(events.map((event) => event.lane).filter(Boolean))].sort().slice(0, 12);
    const share = (time) => `${(100 * Math.min(Math.max(time, 0), this.length)) / (this.length || 1)}%`;
    const mark = (event) =>
      element("span", {
        class: event.held ? "held" : "instant",
        style: { left: share(event.at), width: event.held ? share(event.held) : null },
        title: this.byStep ? event.what : `${position(event.at)} ${event.what}`,
        on: { click: () => this.jump(event.at) },
      });
    const lane = (name, marks) =>
      element(
        "div",
        { class: "lane" },
        element("span", { class: "lane-name" }, name),
        element("div", { class: "marks" }, marks),
      );
    const others = events.filter((event) => !names.includes(event.lane));
    return [
      ...names.map((name) => lane(name, events.filter((event) => event.lane === name).map(mark))),
      others.length ? lane("", others.map(mark)) : null,
    ];
  }

  // The video ends with the episode; its exact start is unknown.
  videoOffset() {
    return Number.isFinite(this.video.duration) ? Math.max(0, this.video.duration - this.length) : 0;
  }

  jump(at) {
    if (!this.video) return;
    this.video.currentTime = at + this.videoOffset();
  }

  follow() {
    const share = (this.video.currentTime - this.videoOffset()) / (this.length || 1);
    this.playhead.style.setProperty("--at", String(Math.min(Math.max(share, 0), 1)));
  }
}
