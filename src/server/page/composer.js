// Where questions are written.
import { byId } from "./dom.js";

let from = null;  // the place of an earlier question that is being changed
let kept = "";    // what was being written before

function fit() {
  const area = byId("question");
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight}px`;
}

function setText(text) {
  const area = byId("question");
  area.value = text;
  area.dispatchEvent(new Event("input"));
}

export function focusQuestion() {
  // On a touch screen the focus would open the keyboard.
  if (matchMedia("(pointer: fine)").matches) byId("question").focus();
}

export function editFrom(place, text) {
  if (from === null) kept = byId("question").value;
  from = place;
  byId("editing").hidden = false;
  setText(text);
  byId("question").focus();
}

export function endEdit() {
  if (from === null) return;
  from = null;
  byId("editing").hidden = true;
  setText(kept);
}

export function showRunning(isRunning) {
  byId("send").hidden = isRunning;
  byId("stop").hidden = !isRunning;
}

// hooks: {ask(text, from) -> whether it was taken, stop(), editLast()}
export function startComposer(hooks) {
  const area = byId("question");
  const submit = () => {
    const text = area.value.trim();
    if (text === "" || !hooks.ask(text, from)) return;
    kept = "";
    if (from === null) setText("");
    else endEdit();
  };
  area.addEventListener("input", () => {
    byId("send").disabled = area.value.trim() === "";
    fit();
  });
  area.addEventListener("keydown", (event) => {
    // isComposing: the key belongs to an input method.
    if (event.key === "Enter" && !event.shiftKey && !event.altKey && !event.isComposing) {
      event.preventDefault();
      submit();
    } else if (event.key === "ArrowUp" && !event.altKey && area.value === "") {
      event.preventDefault();
      hooks.editLast();
    }
  });
  byId("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  byId("stop").addEventListener("click", () => {
    hooks.stop();
    focusQuestion();
  });
  byId("cancel-edit").addEventListener("click", () => {
    endEdit();
    area.focus();
  });
}

export const isEditing = () => from !== null;
