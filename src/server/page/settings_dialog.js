// The dialog of the settings. A change holds at once; what is no valid value is marked and not taken.
import { byId, confirmed, el } from "./dom.js";
import { changeSettings, resetSettings, settings, toolList } from "./settings.js";
import { allChats } from "./store.js";

const NUMBERS = ["temperature", "top_p", "max_tokens", "seed"];
const TEXTS = ["system", "key", "theme", "thinking"];
const THINKING = {
  none: [["", "As the model does"]],
  switch: [["", "As the model does"], ["on", "On"], ["off", "Off"]],
  levels: [["", "As the model does"], ["off", "Off"], ["low", "Low"], ["medium", "Medium"], ["high", "High"]],
};

const field = (name) => byId(`set-${name}`);

function mark(input, isWrong) {
  if (isWrong) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
}

function fill() {
  for (const name of NUMBERS) field(name).value = settings[name] ?? "";
  for (const name of [...TEXTS, "tools"]) field(name).value = settings[name];
  for (const name of [...NUMBERS, "tools"]) mark(field(name), false);
}

function takeNumber(name) {
  const input = field(name);
  const { badInput, rangeUnderflow, rangeOverflow } = input.validity;
  const isWhole = input.step !== "1" || Number.isInteger(Number(input.value));
  const isWrong = badInput || rangeUnderflow || rangeOverflow || !isWhole;
  mark(input, isWrong);
  if (!isWrong) changeSettings({ [name]: input.value === "" ? null : Number(input.value) });
}

function takeTools() {
  const note = byId("tools-note");
  try {
    const tools = toolList(field("tools").value);
    changeSettings({ tools: field("tools").value });
    note.textContent = tools.length === 0 ? "Calls are shown, and you give their results." : `${tools.length} ${tools.length === 1 ? "function" : "functions"}.`;
    mark(field("tools"), false);
  } catch (error) {
    note.textContent = `Not taken: ${error.message}`;
    mark(field("tools"), true);
  }
}

function exportChats() {
  const blob = new Blob([JSON.stringify(allChats(), null, 1)], { type: "application/json" });
  const link = el("a", { href: URL.createObjectURL(blob), download: "conversations.json" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// What the server does when a field is left empty.
export function showDefaults(props) {
  const { temperature, top_p: topP } = props.default_sampling;
  field("temperature").placeholder = `${Number(temperature.toFixed(3))} (the model's)`;
  field("top_p").placeholder = `${Number(topP.toFixed(3))} (the model's)`;
  field("max_tokens").placeholder = props.max_tokens > 0 ? String(props.max_tokens) : "No limit";
  const choices = THINKING[props.thinking] ?? THINKING.none;
  field("thinking").replaceChildren(...choices.map(([value, text]) => el("option", { value }, text)));
  // One that was made for another model.
  if (!choices.some(([value]) => value === settings.thinking)) changeSettings({ thinking: "" });
  field("thinking").value = settings.thinking;
  field("thinking").disabled = props.thinking === "none";
  field("tools").disabled = !props.tools;
  byId("tools-note").textContent = "Calls are shown, and you give their results.";
  if (!props.tools) byId("tools-note").textContent = "The chat template of this model knows no tools.";
}

export function openSettings(focusOn = null) {
  fill();
  byId("settings").showModal();
  if (focusOn !== null) field(focusOn).focus();
}

// hooks: {keyChanged(), deleteAll()}
export function startSettings(hooks) {
  for (const name of NUMBERS) field(name).addEventListener("input", () => takeNumber(name));
  for (const name of TEXTS) field(name).addEventListener("input", () => changeSettings({ [name]: field(name).value }));
  field("key").addEventListener("change", hooks.keyChanged);
  field("tools").addEventListener("input", takeTools);
  byId("open-settings").addEventListener("click", () => openSettings());
  byId("reset-settings").addEventListener("click", () => {
    resetSettings();
    fill();
  });
  byId("export-chats").addEventListener("click", exportChats);
  byId("delete-chats").addEventListener("click", async () => {
    if (await confirmed("Delete all conversations of this browser?")) hooks.deleteAll();
  });
  const dialog = byId("settings");
  // A click beside it closes it.
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  // Enter in a field would press the first button, which closes.
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.tagName === "INPUT") event.preventDefault();
  });
}
