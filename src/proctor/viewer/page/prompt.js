// A prompt as the candidate saw it: messages with their roles, texts and pictures.

function promptView(prompt) {
  const messages = typeof prompt === "string" ? [{ role: "user", content: prompt }] : prompt;
  return element("div", { class: "conversation" }, messages.map(messageView));
}

function messageView(message) {
  const parts = typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;
  return element(
    "div",
    { class: `message ${message.role}` },
    element("h3", { class: "role" }, message.role),
    parts.map((part) =>
      part.type === "image"
        ? picture(part.media_type, part.data, "a picture that the candidate was shown", { class: "shown" })
        : verbatim(part.text),
    ),
  );
}

function hasPicture(prompt) {
  return (
    typeof prompt !== "string" &&
    prompt.some(({ content }) => typeof content !== "string" && content.some((part) => part.type === "image"))
  );
}
