// A call that the model wants made: its name and arguments, and its result, which the user gives.
import { copyButton } from "./code.js";
import { el } from "./dom.js";
import { highlighted } from "./highlight.js";
import { icon } from "./icons.js";

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

export class ToolCallView {
  // given: the result, if there is one. send(): all results are to be sent.
  constructor(call, given, send) {
    this.call = call;
    this.given = given;
    this.name = el("span", { class: "name mono" });
    this.code = el("code");
    this.input = el("textarea", { rows: "2", class: "mono", placeholder: "What the function returns", "aria-label": "Result of the call" });
    this.form = el("form", { class: "result" }, this.input, el("button", { class: "button" }, "Send the result"));
    this.form.hidden = true;
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      send();
    });
    this.root = el("section", { class: "call", "aria-label": "Tool call" },
      el("div", { class: "code-head" }, icon("tool"), this.name, copyButton("Copy the arguments", () => call.arguments)),
      el("pre", { tabindex: "0", "aria-label": "Arguments" }, this.code),
      this.form,
      given !== undefined && el("div", { class: "given" }, el("span", { class: "dim small" }, "Result"), el("pre", {}, given)));
  }

  update(isRunning) {
    this.name.textContent = this.call.name || "...";
    const text = isRunning ? this.call.arguments : pretty(this.call.arguments);
    if (this.code.textContent !== text) this.code.replaceChildren(...highlighted(text, "json"));
  }

  // Whether a result can be given now.
  setOpen(isOpen) {
    this.form.hidden = !isOpen || this.given !== undefined;
  }

  result() {
    return this.given ?? this.input.value;
  }
}
