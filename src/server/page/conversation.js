// The conversation that is shown, and the answers that are on their way: also in others, which go on
// while they are not shown.
import { newAnswer, receiveAnswer } from "./answer.js";
import { ApiError } from "./api.js";
import { announce } from "./dom.js";
import { count } from "./format.js";
import { allChats, deleteChat, getChat, newChat, saveChat, titleOf } from "./store.js";

const SAVE_EVERY_MS = 2000;

export let chat = newChat();
const running = new Map();  // conversation's id -> AbortController

// Set by main.js.
export const on = {
  shown() {},          // another conversation, or other messages in it
  grew(_message) {},   // a message of the one that is shown
  list() {},           // what the list of conversations shows
  ended() {},          // an answer, of any
};

export const isRunning = (id = chat.id) => running.has(id);
export const isKept = () => getChat(chat.id) === chat;

// The address names what is shown, so that a reload shows it again.
const nameInAddress = () => history.replaceState(null, "", isKept() ? `#${chat.id}` : location.pathname + location.search);
export const idInAddress = () => location.hash.slice(1);

export function show(id) {
  chat = getChat(id) ?? newChat();
  nameInAddress();
  on.shown();
  on.list();
}

export const startNew = () => show("");

export function step(by) {
  const all = allChats();
  const at = all.indexOf(chat);
  const next = all[at < 0 ? 0 : at + by];
  if (next) show(next.id);
}

export function remove(id) {
  running.get(id)?.abort();
  deleteChat(id);
  if (id === chat.id) startNew();
  else on.list();
}

export function rename(title) {
  chat.title = titleOf(title) || chat.title;
  saveChat(chat);
  on.list();
}

// Another tab changed it, or took it away.
export function outsideChange(id) {
  if (id === chat.id && !isRunning()) show(id);
  else on.list();
}

export const stop = () => running.get(chat.id)?.abort();

function failureOf(error) {
  if (error instanceof ApiError) return { error: error.message, status: error.status, retryAfter: error.retryAfter };
  return { error: `The answer broke off: ${error.message}` };
}

async function run(of) {
  const message = newAnswer();
  const before = of.messages.slice();
  of.messages.push(message);
  of.updated = Date.now();
  const controller = new AbortController();
  running.set(of.id, controller);
  saveChat(of);
  if (of === chat) {
    nameInAddress();
    on.shown();
  }
  on.list();
  announce("Answering");
  let saved = performance.now();
  // A long prompt takes a while: the time goes on.
  const clock = setInterval(() => of === chat && on.grew(message), 1000);
  try {
    await receiveAnswer(before, message, controller.signal, () => {
      if (of === chat) on.grew(message);
      if (performance.now() - saved < SAVE_EVERY_MS) return;
      saved = performance.now();
      saveChat(of);
    });
    message.state = "done";
  } catch (error) {
    message.state = controller.signal.aborted ? "stopped" : "failed";
    if (message.state === "failed") Object.assign(message, failureOf(error));
  }
  clearInterval(clock);
  running.delete(of.id);
  // Deleted meanwhile: it stays so.
  if (getChat(of.id) === of) saveChat(of);
  announce({ done: `Answer complete, ${count(message.stats.generated)} tokens`, stopped: "Stopped", failed: `Failed: ${message.error}` }[message.state]);
  if (of === chat) on.grew(message);
  on.list();
  on.ended();
}

// from: place of an earlier question that this one replaces, with all that follows.
export function ask(text, from = null) {
  if (isRunning() || text.trim() === "") return;
  if (from !== null) chat.messages.length = from;
  if (chat.messages.length === 0 && !chat.title) chat.title = titleOf(text);
  chat.messages.push({ role: "user", content: text });
  run(chat);
}

// Answers the last question again.
export function retry() {
  if (isRunning()) return;
  const last = chat.messages.findLastIndex(({ role }) => role === "assistant");
  if (last < 0) return;
  chat.messages.length = last;
  run(chat);
}

// results: [{id, content}] for the calls of the last answer.
export function giveResults(results) {
  if (isRunning()) return;
  for (const { id, content } of results) chat.messages.push({ role: "tool", id, content });
  run(chat);
}

// A page that goes keeps what has come.
window.addEventListener("pagehide", () => {
  for (const id of running.keys()) {
    if (getChat(id)) saveChat(getChat(id));
  }
});
