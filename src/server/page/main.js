// Starts the page and ties its parts together.
import { editFrom, endEdit, focusQuestion, isEditing, showRunning, startComposer } from "./composer.js";
import * as conversation from "./conversation.js";
import { byId, el } from "./dom.js";
import { count } from "./format.js";
import { fillIcons, icon } from "./icons.js";
import { bar } from "./meter.js";
import { lookNow, props, watchServer } from "./server_panel.js";
import { loadSettings } from "./settings.js";
import { openSettings, showDefaults, startSettings } from "./settings_dialog.js";
import { isSidebarOpen, openSidebar, renderChats, startSidebar } from "./sidebar.js";
import { allChats, loadChats, onOutsideChange, storageError } from "./store.js";
import { messageGrew, showMessages, startTranscript } from "./transcript.js";

const openKey = () => openSettings("key");

const actions = {
  edit: (place) => editFrom(place, conversation.chat.messages[place].content),
  retry: conversation.retry,
  openKey,
  giveResults: conversation.giveResults,
};

const heading = byId("title");

function showTitle() {
  const title = conversation.chat.title || "New conversation";
  heading.textContent = title;
  byId("rename").hidden = !conversation.isKept();
  document.title = conversation.chat.title ? `${title} \u00b7 turboquant` : "turboquant";
}

// How much of the context the last answer had taken up.
function showContext() {
  const last = conversation.chat.messages.findLast(({ stats }) => stats?.prompt !== undefined);
  if (!last || props === null) return byId("context").replaceChildren();
  const tokens = last.stats.prompt + last.stats.generated;
  byId("context").replaceChildren(bar([[tokens / props.context_length, "used"]]), `${count(tokens)} / ${count(props.context_length)} tokens`);
}

function showBanner(text, button = null) {
  byId("banner").hidden = text === "";
  byId("banner").replaceChildren(icon("warning"), el("span", {}, text), ...(button ? [button] : []));
}

function showFailure(error) {
  if (error === null) return showBanner(storageError);
  const button = error.status === 401 && el("button", { type: "button", class: "button", onclick: openKey }, "Enter the key");
  showBanner(error.message, button);
}

function shown() {
  endEdit();
  showMessages(conversation.chat.messages, props, actions);
  showContext();
}

function list() {
  renderChats();
  showTitle();
  showRunning(conversation.isRunning());
}

function editLast() {
  const place = conversation.chat.messages.findLastIndex(({ role }) => role === "user");
  if (place >= 0 && !conversation.isRunning()) actions.edit(place);
}

function rename() {
  const input = el("input", { class: "title", "aria-label": "Title of the conversation" });
  input.value = conversation.chat.title;
  let isDone = false;
  const end = (takes) => {
    if (isDone) return;
    isDone = true;
    input.replaceWith(heading);
    if (takes) conversation.rename(input.value);
    showTitle();
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") end(true);
    if (event.key === "Escape") end(false);
  });
  input.addEventListener("blur", () => end(true));
  heading.replaceWith(input);
  input.select();
}

function startNew() {
  conversation.startNew();
  if (isSidebarOpen()) openSidebar(false);
  focusQuestion();
}

const ALT_KEYS = {
  KeyN: startNew,
  KeyR: conversation.retry,
  Comma: () => openSettings(),
  ArrowUp: () => conversation.step(-1),
  ArrowDown: () => conversation.step(1),
};

function onKey(event) {
  if (document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey) return;
  const isTyping = event.target.matches("input, textarea, select");
  if (event.altKey && ALT_KEYS[event.code]) {
    event.preventDefault();
    ALT_KEYS[event.code]();
  } else if (event.key === "Escape" && !event.target.matches("input.title")) {
    if (isSidebarOpen()) openSidebar(false);
    else if (isEditing()) endEdit();
    else conversation.stop();
  } else if (event.key === "/" && !isTyping) {
    event.preventDefault();
    byId("question").focus();
  }
}

function start() {
  loadSettings();
  loadChats();
  fillIcons();
  startTranscript();
  startSidebar();
  startSettings({
    keyChanged: lookNow,
    deleteAll: () => allChats().forEach(({ id }) => conversation.remove(id)),
  });
  startComposer({
    ask(text, from) {
      if (conversation.isRunning()) return false;
      conversation.ask(text, from);
      return true;
    },
    stop: conversation.stop,
    editLast,
  });
  Object.assign(conversation.on, {
    shown,
    list,
    grew: (message) => messageGrew(message, conversation.chat.messages),
    ended() {
      showContext();
      lookNow();
    },
  });
  onOutsideChange(conversation.outsideChange);
  byId("new-chat").addEventListener("click", startNew);
  byId("rename").addEventListener("click", rename);
  document.addEventListener("keydown", onKey);
  conversation.show(conversation.idInAddress());
  watchServer({
    found(facts) {
      byId("model").textContent = facts.model;
      showDefaults(facts);
      if (conversation.chat.messages.length === 0) shown();
      showContext();
    },
    failed: showFailure,
    isBusy: () => conversation.isRunning(),
  });
  focusQuestion();
}

start();
