// A bar of parts: meter("KV cache", "12%", [[0.1, "used"], [0.3, "kept"]]) -> an element.
import { el } from "./dom.js";

export function bar(parts) {
  const node = el("div", { class: "meter" });
  for (const [share, kind] of parts) {
    const part = el("span", { class: kind });
    part.style.width = `${Math.min(Math.max(share, 0), 1) * 100}%`;
    node.append(part);
  }
  return node;
}

export const meter = (name, text, parts, title) =>
  el("div", { class: "gauge", title }, el("span", { class: "name" }, name), el("span", { class: "value" }, text), bar(parts));
