// Reviews of a sample: stars, comments and scores.

class Review {
  // `author` is empty if the page is read-only; `changed` is called after a review.
  constructor(data, author, key, reviews, changed) {
    this.data = data;
    this.author = author;
    this.key = key;
    this.reviews = reviews;
    this.changed = changed;
    this.mine = Object.fromEntries(
      reviews.filter((review) => review.author === author).map((review) => [review.kind, review.body]),
    );
    this.error = element("p", { class: "notice", hidden: true, role: "alert" });
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
    const list = this.reviews.length ? element("ul", { class: "reviews" }, this.reviews.map(reviewLine)) : null;
    if (!this.author) return list;
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
      form("Comment", "Save", comment, () => this.send("comment", comment.value)),
      form("Score, from 0 to 1", "Save score", score, () => this.send("score", Number(score.value))),
    );
    return element("div", { class: "review" }, list, this.error, folded(`Comment or score as ${this.author}`, forms));
  }

  async send(kind, body) {
    try {
      await this.data.review({ ...this.key, kind, body });
    } catch (error) {
      this.error.textContent = error.message;
      this.error.hidden = false;
      return;
    }
    this.changed();
  }
}

function reviewLine(review) {
  const what = { star: "starred it", comment: `“${review.body}”`, score: `scored ${number(Number(review.body))}` }[
    review.kind
  ];
  const time = element(
    "time",
    { class: "soft", datetime: new Date(review.created * 1000).toISOString() },
    moment(review.created),
  );
  return element("li", {}, element("b", {}, review.author), ` ${what} `, time);
}
