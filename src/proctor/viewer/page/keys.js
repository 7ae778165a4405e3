// Keyboard shortcuts and the dialog that lists them.

const KEYS = [
  ["j  ↓", "next row, next sample"],
  ["k  ↑", "previous row, previous sample"],
  ["→  ←", "next sample, previous sample"],
  ["Enter", "open the row"],
  ["x", "select a run to compare"],
  ["s", "star the sample, with --review"],
  ["/", "search"],
  ["u  Esc", "back to the list"],
  ["?", "this list"],
];

function keysDialog() {
  const rows = KEYS.map(([keys, words]) =>
    element(
      "tr",
      {},
      element(
        "th",
        { scope: "row" },
        keys.split(/ +/).flatMap((key) => [element("kbd", {}, key), " "]),
      ),
      element("td", {}, words),
    ),
  );
  const dialog = element(
    "dialog",
    { "aria-label": "Keys", on: { close: () => dialog.remove() } },
    element("h2", {}, "Keys"),
    element("table", { class: "keys" }, element("tbody", {}, rows)),
    element("form", { method: "dialog" }, element("button", {}, "Close")),
  );
  document.body.append(dialog);
  dialog.showModal();
}
