// Icons as lines in a square of 24.
import { el } from "./dom.js";

const PATHS = {
  bolt: "M13 3 5 14h6l-1 7 8-11h-6l1-7Z",
  check: "m5 12.5 4.5 4.5L19 7",
  chevron: "m9 6 6 6-6 6",
  close: "M6 6l12 12M18 6 6 18",
  copy: "M9 9h10v11H9zM15 9V4H5v11h4",
  down: "M12 5v14m-6-6 6 6 6-6",
  edit: "M4 20h4L19 9l-4-4L4 16v4ZM13 7l4 4",
  menu: "M4 7h16M4 12h16M4 17h10",
  plus: "M12 5v14M5 12h14",
  retry: "M5 12a7 7 0 1 0 2-4.9L4.5 9.5M4.5 4.5v5h5",
  send: "M12 19V5m-6 6 6-6 6 6",
  sliders: "M4 7h9m4 0h3M4 17h3m4 0h9M15 4.5v5M9 14.5v5",
  source: "m8 7-5 5 5 5m8-10 5 5-5 5",
  stop: "M7 7h10v10H7z",
  tool: "M14.5 6.5a4 4 0 0 1 5-1.5l-3 3 1.5 1.5 3-3a4 4 0 0 1-5.5 5L8 19a2 2 0 0 1-3-3l7.5-7.5a4 4 0 0 1 2-2Z",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  warning: "M12 4 2.5 20h19L12 4Zm0 6v5m0 2.5v.1",
};

const SVG = "http://www.w3.org/2000/svg";

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}

export function iconButton(name, label, onclick) {
  return el("button", { type: "button", class: "icon", "aria-label": label, title: label, onclick }, icon(name));
}

// The icons of what stands in index.html.
export function fillIcons() {
  for (const node of document.querySelectorAll("[data-icon]")) node.prepend(icon(node.dataset.icon));
}
