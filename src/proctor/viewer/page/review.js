// What people say of a sample: stars, comments and scores of their own, beside the original score.

function reviewView(data, author, place, reviews, changed) {
  const said = element("ul", { class: "reviews" }, reviews.map(reviewLine));
  if (!author) return reviews.length ? section("Review", { class: "review" }, said) : null;
  const mine = Object.fromEntries(reviews.filter((review) => review.author === author).map((review) => [review.kind, review.body]));
  const trouble = element("p", { class: "notice", hidden: true, role: "alert" });
  const send = async (kind, body) => {
    try {
      await data.review({ ...place, kind, body });
      changed();
    } catch (error) {
      trouble.textContent = error.message;
      trouble.hidden = false;
    }
  };
  const comment = element("textarea", { name: "comment", rows: "2", value: mine.comment || "", "aria-label": "Comment" });
  const score = element("input", { name: "score", type: "number", min: "0", max: "1", step: "any", value: mine.score ?? "", required: true, "aria-label": "Score from 0 to 1" });
  const form = (label, field, act) =>
    element("form", { on: { submit: (event) => (event.preventDefault(), act()) } }, field, element("button", { type: "submit" }, label));
  return section(
    "Review",
    { class: "review" },
    said,
    trouble,
    element("p", {}, button(mine.star ? "★ Starred" : "☆ Star", () => send("star", !mine.star), { "aria-pressed": String(Boolean(mine.star)), class: "star-button" }), element("span", { class: "soft" }, ` as ${author}`)),
    form("Comment", comment, () => send("comment", comment.value)),
    form("Score again", score, () => send("score", Number(score.value))),
  );
}

function reviewLine(review) {
  const what = { star: "starred it", comment: `“${review.body}”`, score: `would score ${number(Number(review.body))}` }[review.kind];
  return element("li", {}, element("b", {}, review.author), ` ${what} `, element("time", { class: "soft", datetime: new Date(review.created * 1000).toISOString() }, moment(review.created)));
}
