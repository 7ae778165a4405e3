// What people say of a sample: stars, comments and scores of their own, beside the original score.

class Review {
  // `author` is empty where nothing may be written; `changed` is called when something was.
  constructor(data, author, place, reviews, changed) {
    this.data = data;
    this.author = author;
    this.place = place;
    this.reviews = reviews;
    this.changed = changed;
    this.mine = Object.fromEntries(
      reviews.filter((review) => review.author === author).map((review) => [review.kind, review.body]),
    );
    this.trouble = element("p", { class: "notice", hidden: true, role: "alert" });
  }

  star() {
    if (!this.author) return null;
    const starred = Boolean(this.mine.star);
    return button(starred ? "★ Starred" : "☆ Star", () => this.send("star", !starred), {
      class: "star-button",
      "aria-pressed": String(starred),
    });
  }

  view() {
    const said = this.reviews.length ? element("ul", { class: "reviews" }, this.reviews.map(reviewLine)) : null;
    if (!this.author) return said;
    const comment = element("textarea", { name: "comment", rows: "2", value: this.mine.comment || "" });
    const score = element("input", {
      name: "score",
      type: "number",
      min: "0",
      max: "1",
      step: "any",
      value: this.mine.score ?? "",
      required: true,
    });
    const form = (name, label, field, act) =>
      element(
        "form",
        { on: { submit: (event) => (event.preventDefault(), act()) } },
        element("label", {}, element("span", {}, name), field),
        element("button", { type: "submit" }, label),
      );
    const forms = element(
      "div",
      { class: "review-forms" },
      form("Comment", "Keep it", comment, () => this.send("comment", comment.value)),
      form("Score, from 0 to 1", "Score again", score, () => this.send("score", Number(score.value))),
    );
    return element("div", { class: "review" }, said, this.trouble, folded(`Comment or score as ${this.author}`, forms));
  }

  async send(kind, body) {
    try {
      await this.data.review({ ...this.place, kind, body });
    } catch (error) {
      this.trouble.textContent = error.message;
      this.trouble.hidden = false;
      return;
    }
    this.changed();
  }
}

function reviewLine(review) {
  const what = { star: "starred it", comment: `“${review.body}”`, score: `would score ${number(Number(review.body))}` }[
    review.kind
  ];
  const time = element(
    "time",
    { class: "soft", datetime: new Date(review.created * 1000).toISOString() },
    moment(review.created),
  );
  return element("li", {}, element("b", {}, review.author), ` ${what} `, time);
}
