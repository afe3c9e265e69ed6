// The settings: what they are, and where they are kept.

const NAME = "turboquant.settings";

// A null leaves the value to the server.
const DEFAULTS = {
  system: "",
  temperature: null,
  top_p: null,
  max_tokens: null,
  seed: null,
  thinking: "",  // "", "off", "on", "low", "medium", "high"
  tools: "",     // JSON as it was typed
  key: "",
  model: "",     // of several that the server has; "": its first
  theme: "",     // "", "light", "dark"
};

export const settings = { ...DEFAULTS };

function take(saved) {
  for (const name of Object.keys(DEFAULTS)) {
    const value = saved[name];
    const fits = DEFAULTS[name] === null ? value === null || Number.isFinite(value) : typeof value === "string";
    settings[name] = fits ? value : DEFAULTS[name];
  }
}

export function loadSettings() {
  try {
    take(JSON.parse(localStorage.getItem(NAME) || "{}"));
  } catch {
    take({});
  }
}

export function changeSettings(changes) {
  Object.assign(settings, changes);
  try {
    localStorage.setItem(NAME, JSON.stringify(settings));
  } catch {
    // They hold as long as the page does.
  }
  if (settings.theme) document.documentElement.dataset.theme = settings.theme;
  else delete document.documentElement.dataset.theme;
}

// Key and model stay: who resets how answers are made does not mean to log out.
export const resetSettings = () => changeSettings({ ...DEFAULTS, key: settings.key, model: settings.model });

// The tools as a list. Throws what is wrong with the text.
export function toolList(text = settings.tools) {
  if (text.trim() === "") return [];
  const tools = JSON.parse(text);
  if (!Array.isArray(tools)) throw new Error("expected a list [...]");
  return tools;
}

// What a request to /v1/chat/completions has of them.
export function requestFields() {
  const fields = {};
  for (const name of ["temperature", "top_p", "max_tokens", "seed"]) {
    if (settings[name] !== null) fields[name] = settings[name];
  }
  if (settings.model !== "") fields.model = settings.model;
  const effort = { off: "none", on: "medium" }[settings.thinking] || settings.thinking;
  if (effort) fields.reasoning_effort = effort;
  const tools = toolList();
  if (tools.length > 0) fields.tools = tools;
  return fields;
}
