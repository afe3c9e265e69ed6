// A block of code: its language, a button that copies it, colours.
import { announce, el } from "./dom.js";
import { highlighted } from "./highlight.js";
import { icon } from "./icons.js";

// The clipboard of browsers is there on secure origins alone; the old way needs a selection.
export async function copyText(text) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Not allowed: the old way may be.
    }
  }
  const area = el("textarea", { class: "hidden", readonly: true });
  area.value = text;
  // A dialog that is open takes the focus from what is outside.
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

export function copyButton(label, text) {
  const button = el("button", { type: "button", class: "copy", "aria-label": label, title: label }, icon("copy"));
  button.addEventListener("click", async () => {
    const done = await copyText(text());
    announce(done ? "Copied" : "The browser did not let the page copy");
    button.replaceChildren(icon(done ? "check" : "warning"));
    button.focus();
    setTimeout(() => button.replaceChildren(icon("copy")), 1500);
  });
  return button;
}

export function codeBlock(text, language) {
  return el("div", { class: "code" },
    el("div", { class: "code-head" }, el("span", {}, language || "text"), copyButton("Copy the code", () => text)),
    el("pre", { tabindex: "0", "aria-label": `Code${language && `, ${language}`}` }, el("code", {}, highlighted(text, language))));
}
