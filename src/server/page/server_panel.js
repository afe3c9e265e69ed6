// The server at a glance: what it serves, and how full it is. From /props and /metrics. Where it
// serves several models, the one that answers is chosen here.
import { getJson, getText } from "./api.js";
import { byId, el } from "./dom.js";
import { bytes, count, percent } from "./format.js";
import { meter } from "./meter.js";
import { changeSettings, settings } from "./settings.js";

const BUSY_MS = 2000;
const IDLE_MS = 15000;

export let props = null;  // of /props, once it is known: of the model that is chosen

// Numbers of Prometheus' text format that are of the whole server, or of this model.
export function parseMetrics(text, model) {
  const values = {};
  const own = `{model="${model.replace(/[\\"]/g, "\\$&")}"}`;
  for (const line of text.split("\n")) {
    const found = /^(\w+)(\{.*\})? ([-+.\deE]+)$/.exec(line);
    if (found !== null && (found[2] === undefined || found[2] === own)) values[found[1]] = Number(found[3]);
  }
  return values;
}

function cacheGauge(values) {
  const pages = values.turboquant_kv_pages;
  if (pages === undefined) return null;
  const used = pages - values.turboquant_kv_pages_free;
  const kept = Math.min(values.turboquant_prefix_cache_pages, pages - used);
  const tokens = values.turboquant_kv_page_tokens;
  const size = bytes(pages * tokens * values.turboquant_kv_bytes_per_token);
  return meter("KV cache", `${percent(used + kept, pages)} of ${size}`, [[used / pages, "used"], [kept / pages, "kept"]],
    `${count(used * tokens)} tokens in use, ${count(kept * tokens)} kept for prompts to come, of ${count(pages * tokens)}`);
}

function memoryGauge(values) {
  const used = values.process_resident_memory_bytes;
  const total = values.turboquant_system_memory_bytes;
  if (!used || !total) return null;
  return meter("Memory", `${bytes(used)} of ${bytes(total)}`, [[used / total, "used"]], "Of the server's process, of the machine");
}

function hitGauge(values) {
  const all = values.turboquant_prompt_tokens_total;
  if (!all) return null;
  const cached = values.turboquant_prompt_tokens_cached_total;
  return meter("Prompt from cache", percent(cached, all), [[cached / all, "kept"]],
    `${count(cached)} of ${count(all)} prompt tokens so far did not have to be computed`);
}

function choose(model) {
  changeSettings({ model });
  props = null;
  lookNow();
}

// What stands above the numbers, and stays while they change: a list that is open must not be replaced.
function renderModel() {
  const names = props.models ?? [];
  const model = names.length < 2 ? el("p", { class: "served mono" }, props.model)
    : el("label", { class: "choice" }, "Model",
      el("select", { onchange: (event) => choose(event.target.value) },
        names.map((name) => el("option", { value: name, selected: name === props.model }, name))));
  byId("server").replaceChildren(model, el("div", { class: "numbers" }));
}

function loadText(values) {
  if (values.turboquant_model_loaded === 0) {
    return values.turboquant_requests_waiting > 0 ? "Being loaded" : "Loaded by the next question";
  }
  return `${count(values.turboquant_requests_running)} running, ${count(values.turboquant_requests_waiting)} waiting`;
}

function renderNumbers(values) {
  byId("server").querySelector(".numbers").replaceChildren(
    ...[cacheGauge(values), memoryGauge(values), hitGauge(values)].filter((gauge) => gauge !== null),
    el("p", { class: "load" }, el("span", { class: `dot ${values.turboquant_requests_running > 0 ? "busy" : ""}` }),
      loadText(values),
      el("span", { class: "right", title: `turboquant ${props.version}` }, props.backend)));
}

// The model that was chosen, as long as the server has it.
async function getProps() {
  if (settings.model !== "") {
    const models = (await getJson("props")).models ?? [];
    if (!models.includes(settings.model)) changeSettings({ model: "" });
  }
  return getJson(settings.model === "" ? "props" : `props?model=${encodeURIComponent(settings.model)}`);
}

async function refresh() {
  if (props === null) {
    props = await getProps();
    renderModel();
  }
  const chosen = props;
  const values = parseMetrics(await getText("metrics"), chosen.model);
  if (chosen === props) renderNumbers(values);
}

let timer = 0;
let at = {};

// What it does next: found(props) the first time, failed(error) whenever there is no answer; isBusy(): how
// often to ask.
export function watchServer(hooks) {
  at = hooks;
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) lookNow();
  });
  lookNow();
}

export async function lookNow() {
  clearTimeout(timer);
  const isNew = props === null;
  try {
    await refresh();
    if (isNew) at.found(props);
    at.failed(null);
  } catch (error) {
    // When it is back, it may serve another model.
    props = null;
    at.failed(error);
  }
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(lookNow, at.isBusy() ? BUSY_MS : IDLE_MS);
}
