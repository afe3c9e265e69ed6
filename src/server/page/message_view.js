// A message on the page. update() shows what it has become.
import { copyButton } from "./code.js";
import { el } from "./dom.js";
import { count, rate, seconds } from "./format.js";
import { icon, iconButton } from "./icons.js";
import { MarkdownView } from "./markdown.js";
import { ToolCallView } from "./tool_call.js";

function copyAction(text) {
  const button = copyButton("Copy", text);
  button.className = "icon";
  return button;
}

export class QuestionView {
  constructor(message, { edit }) {
    this.root = el("article", { class: "message user", "aria-label": "You" },
      el("div", { class: "bubble" }, message.content),
      el("div", { class: "actions" },
        copyAction(() => message.content), iconButton("edit", "Change and ask again", edit)));
  }
  update() {}
}

function statsText({ stats, state, begun }) {
  if (!stats?.generated) {
    const waited = Date.now() - begun;
    return state === "running" && waited > 1500 ? `Reading the prompt or waiting: ${seconds(waited)}` : "";
  }
  const parts = [`${stats.isExact ? "" : "~"}${count(stats.generated)} tokens`];
  // What came in one piece says nothing about the speed.
  if (stats.events >= 4 && stats.streamMs >= 20) parts.push(rate(stats.generated - 1, stats.streamMs));
  if (stats.firstMs !== undefined) parts.push(`first after ${seconds(stats.firstMs)}`);
  if (state !== "running" && stats.prompt !== undefined) {
    parts.push(stats.cached > 0 ? `${count(stats.cached)} of ${count(stats.prompt)} prompt tokens cached` : `${count(stats.prompt)} prompt tokens`);
  }
  return parts.join(" \u00b7 ");
}

class Thoughts {
  constructor() {
    this.text = new MarkdownView();
    this.label = el("span");
    this.root = el("details", { class: "thoughts", hidden: true },
      el("summary", {}, icon("chevron"), this.label), this.text.root);
    // What nobody sees is not made.
    this.root.addEventListener("toggle", () => this.render());
  }

  update(message) {
    this.message = message;
    this.root.hidden = !message.reasoning;
    const isThinking = message.state === "running" && message.content === "" && message.calls.length === 0;
    this.root.classList.toggle("live", isThinking);
    const time = message.thoughtMs === undefined ? "" : ` for ${seconds(message.thoughtMs)}`;
    this.label.textContent = isThinking ? `Thinking${time}` : `Thought${time}`;
    this.render();
  }

  render() {
    if (this.root.open && this.message) this.text.update(this.message.reasoning.trim());
  }
}

export class AnswerView {
  // actions: {retry, openKey, giveResults(results)}; results: what was said to its calls, by id.
  constructor(message, actions, results) {
    this.message = message;
    this.actions = actions;
    this.results = results;
    this.showsSource = false;
    this.thoughts = new Thoughts();
    this.text = new MarkdownView();
    this.source = el("pre", { class: "source", hidden: true, tabindex: "0", "aria-label": "The answer as it came" });
    this.calls = [];
    this.callList = el("div", { class: "calls" });
    this.waiting = el("p", { class: "waiting", "aria-label": "Waiting for the answer" }, el("i"), el("i"), el("i"));
    this.notice = el("div", { class: "notice", hidden: true });
    this.stats = el("span", { class: "stats" });
    this.retry = iconButton("retry", "Answer again (Alt+R)", actions.retry);
    this.sourceButton = iconButton("source", "The text as it came", () => this.toggleSource());
    this.sourceButton.setAttribute("aria-pressed", "false");
    this.copy = copyAction(() => message.content);
    this.actionBar = el("div", { class: "actions" }, this.copy, this.sourceButton, this.retry);
    this.root = el("article", { class: "message assistant", "aria-label": "Answer" },
      this.thoughts.root, this.waiting, this.text.root, this.source, this.callList, this.notice,
      el("footer", {}, this.stats, this.actionBar));
    this.update();
  }

  // Only the last answer can be made again.
  setLast(isLast) {
    // The notice of a failure has a button of its own.
    this.retry.hidden = !isLast || this.message.state === "failed";
    for (const call of this.calls) call.setOpen(isLast && this.message.state === "done");
  }

  toggleSource() {
    this.showsSource = !this.showsSource;
    this.sourceButton.setAttribute("aria-pressed", String(this.showsSource));
    this.update();
  }

  update() {
    const { message } = this;
    const isRunning = message.state === "running";
    this.root.setAttribute("aria-busy", String(isRunning));
    this.thoughts.update(message);
    this.waiting.hidden = !isRunning || message.content !== "" || message.reasoning !== "" || message.calls.length > 0;
    this.text.root.hidden = this.showsSource;
    this.source.hidden = !this.showsSource;
    this.text.root.classList.toggle("growing", isRunning && message.content !== "");
    if (this.showsSource) this.source.textContent = message.content;
    else this.text.update(message.content.trim());
    this.updateCalls();
    this.updateNotice();
    this.stats.textContent = statsText(message);
    this.actionBar.hidden = isRunning;
    this.copy.hidden = this.sourceButton.hidden = message.content === "";
  }

  updateCalls() {
    for (const [i, call] of this.message.calls.entries()) {
      if (call === undefined || call === null) continue;
      if (this.calls[i] === undefined) {
        this.calls[i] = new ToolCallView(call, this.results.get(call.id), () => this.sendResults());
        this.callList.append(this.calls[i].root);
      }
      this.calls[i].update(this.message.state === "running");
    }
  }

  sendResults() {
    this.actions.giveResults(this.calls.map((view) => ({ id: view.call.id, content: view.result() })));
  }

  updateNotice() {
    const { message } = this;
    const failed = message.state === "failed";
    const text = failed ? message.error
      : message.state === "stopped" ? "Stopped."
      : message.finish === "length" ? "Cut here: the limit of tokens is reached."
      : "";
    this.notice.hidden = text === "";
    this.notice.className = failed ? "notice failed" : "notice";
    if (text === "") return;
    const end = /[.!?]$/.test(text) ? "" : ".";
    const wait = message.retryAfter > 0 ? `${end} Try again in ${message.retryAfter} s.` : "";
    this.notice.replaceChildren(...(failed ? [icon("warning")] : []), el("span", {}, text + wait));
    if (failed && message.status === 401) {
      this.notice.append(el("button", { type: "button", class: "button", onclick: this.actions.openKey }, "Enter the key"));
    } else if (failed) {
      this.notice.append(el("button", { type: "button", class: "button", onclick: this.actions.retry }, "Try again"));
    }
  }
}
