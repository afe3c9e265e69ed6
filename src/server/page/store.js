// The conversations, kept in this browser: one entry each, so that several tabs do not overwrite each
// other's.
//
// A conversation: {id, title, updated, messages}. A message: {role: "user", content};
// {role: "assistant", content, reasoning, calls: [{id, name, arguments}], state, stats, ...}
// (answer.js); {role: "tool", id, content}.

const PREFIX = "turboquant.chat.";
const chats = new Map();
const listeners = [];

export let storageError = "";

export const getChat = (id) => chats.get(id);
// The newest first.
export const allChats = () => [...chats.values()].sort((a, b) => b.updated - a.updated);
// f(id): another tab changed a conversation, or took it away.
export const onOutsideChange = (f) => listeners.push(f);

function isChat(value) {
  return value !== null && typeof value === "object" && typeof value.id === "string" &&
    typeof value.title === "string" && Number.isFinite(value.updated) && Array.isArray(value.messages) &&
    value.messages.every((message) => message !== null && typeof message === "object" && typeof message.role === "string");
}

function read(name, text) {
  try {
    const chat = JSON.parse(text);
    if (!isChat(chat) || PREFIX + chat.id !== name) return;
    for (const message of chat.messages) {
      // The page was closed meanwhile.
      if (message.state === "running") message.state = "stopped";
    }
    chats.set(chat.id, chat);
  } catch {
    // Not ours, or broken: it is left alone.
  }
}

export function loadChats() {
  try {
    for (const name of Object.keys(localStorage)) {
      if (name.startsWith(PREFIX)) read(name, localStorage.getItem(name));
    }
  } catch {
    storageError = "This browser keeps nothing for this page: conversations end with it.";
  }
  window.addEventListener("storage", (event) => {
    if (!event.key?.startsWith(PREFIX)) return;
    const id = event.key.slice(PREFIX.length);
    if (event.newValue === null) chats.delete(id);
    else if (!chats.get(id)?.messages.some((message) => message.state === "running")) read(event.key, event.newValue);
    for (const f of listeners) f(id);
  });
}

export function newChat() {
  // crypto.randomUUID is there on secure origins alone.
  const id = [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return { id, title: "", updated: Date.now(), messages: [] };
}

export function saveChat(chat) {
  chats.set(chat.id, chat);
  try {
    localStorage.setItem(PREFIX + chat.id, JSON.stringify(chat));
    storageError = "";
  } catch {
    storageError = "The browser's storage is full: this conversation is not kept. Delete others.";
  }
}

export function deleteChat(id) {
  chats.delete(id);
  try {
    localStorage.removeItem(PREFIX + id);
  } catch {
    // It was never kept.
  }
}

export function titleOf(text) {
  const line = text.trim().split("\n")[0];
  return line.length > 60 ? `${line.slice(0, 57).trimEnd()}...` : line;
}
