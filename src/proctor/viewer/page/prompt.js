// A prompt: messages with their roles, texts and images.

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
        ? image(part.media_type, part.data, "an image of the prompt", { class: "shown" })
        : verbatim(part.text),
    ),
  );
}

function hasImage(prompt) {
  return (
    typeof prompt !== "string" &&
    prompt.some(({ content }) => typeof content !== "string" && content.some((part) => part.type === "image"))
  );
}
