// The list of conversations. On a narrow screen it lies over the page.
import { byId, confirmed, el } from "./dom.js";
import { when } from "./format.js";
import { iconButton } from "./icons.js";
import { chat, isRunning, remove, show } from "./conversation.js";
import { allChats } from "./store.js";

const isNarrow = () => matchMedia("(max-width: 760px)").matches;

export function openSidebar(isOpen) {
  document.body.classList.toggle("sidebar-open", isOpen);
  byId("veil").hidden = !isOpen;
  byId("open-sidebar").setAttribute("aria-expanded", String(isOpen));
  document.querySelector("main").inert = isOpen;
  if (isOpen) byId("close-sidebar").focus();
  else if (isNarrow()) byId("open-sidebar").focus();
}

export const isSidebarOpen = () => document.body.classList.contains("sidebar-open");

async function askRemove(one) {
  if (await confirmed(`Delete "${one.title}"?`)) remove(one.id);
}

function row(one) {
  const open = () => {
    show(one.id);
    if (isSidebarOpen()) openSidebar(false);
  };
  return el("li", { class: one === chat && "current" },
    el("button", { type: "button", class: "open", "aria-current": one === chat && "page", onclick: open },
      isRunning(one.id) && el("span", { class: "dot busy", "aria-label": "Answering" }),
      el("span", { class: "name" }, one.title),
      el("time", { datetime: new Date(one.updated).toISOString() }, when(one.updated))),
    iconButton("trash", `Delete ${one.title}`, () => askRemove(one)));
}

export function renderChats() {
  const all = allChats();
  const focused = document.activeElement?.closest("#chats li");
  const place = focused ? [...byId("chats").children].indexOf(focused) : -1;
  byId("chats").replaceChildren(...all.map(row));
  byId("no-chats").hidden = all.length > 0;
  if (place >= 0) byId("chats").children[Math.min(place, all.length - 1)]?.querySelector("button").focus();
}

export function startSidebar() {
  byId("open-sidebar").addEventListener("click", () => openSidebar(true));
  byId("close-sidebar").addEventListener("click", () => openSidebar(false));
  byId("veil").addEventListener("click", () => openSidebar(false));
}
