// The messages of the conversation that is shown, and where it is scrolled to.
import { byId } from "./dom.js";
import { AnswerView, QuestionView } from "./message_view.js";
import { welcome } from "./welcome.js";

const NEAR_PX = 60;

let views = new Map();  // message -> its view
let follows = true;     // what grows stays in sight
const changed = new Set();

function scrollDown() {
  const scroll = byId("scroll");
  scroll.scrollTop = scroll.scrollHeight;
}

function updateJump() {
  const scroll = byId("scroll");
  const isNear = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < NEAR_PX;
  follows = isNear;
  byId("jump").hidden = isNear;
}

export function startTranscript() {
  byId("scroll").addEventListener("scroll", updateJump, { passive: true });
  new ResizeObserver(() => follows && scrollDown()).observe(byId("scroll"));
  byId("jump").addEventListener("click", () => {
    follows = true;
    scrollDown();
  });
}

function markLast(messages) {
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  for (const [i, message] of messages.entries()) views.get(message)?.setLast?.(i === last && last === messages.length - 1);
}

// actions: {edit(place), retry, openKey, giveResults(results)}
export function showMessages(messages, props, actions) {
  const results = new Map(messages.filter(({ role }) => role === "tool").map(({ id, content }) => [id, content]));
  const made = new Map();
  for (const [i, message] of messages.entries()) {
    if (message.role === "user") made.set(message, new QuestionView(message, { edit: () => actions.edit(i) }));
    // Views stay as they are opened, but for calls that have their results now.
    const old = message.calls?.some(({ id }) => results.has(id)) ? undefined : views.get(message);
    if (message.role === "assistant") made.set(message, old ?? new AnswerView(message, actions, results));
  }
  views = made;
  const nodes = messages.length > 0 ? [...views.values()].map(({ root }) => root) : [welcome(props)];
  byId("transcript").replaceChildren(...nodes);
  markLast(messages);
  follows = true;
  scrollDown();
  updateJump();
}

export function messageGrew(message, messages) {
  if (changed.size === 0) {
    requestAnimationFrame(() => {
      for (const one of changed) views.get(one)?.update();
      changed.clear();
      markLast(messages);
      if (follows) scrollDown();
      else updateJump();
    });
  }
  changed.add(message);
}
