// The server at a glance: what it serves, and how full it is. From /props and /metrics.
import { getJson, getText } from "./api.js";
import { byId, el } from "./dom.js";
import { bytes, count, percent } from "./format.js";
import { meter } from "./meter.js";

const BUSY_MS = 2000;
const IDLE_MS = 15000;

export let props = null;  // of /props, once it is known

// Numbers without labels of Prometheus' text format.
export function parseMetrics(text) {
  const values = {};
  for (const line of text.split("\n")) {
    const found = /^(\w+) ([-+.\deE]+)$/.exec(line);
    if (found !== null) values[found[1]] = Number(found[2]);
  }
  return values;
}

function cacheGauge(values) {
  const pages = values.turboquant_kv_pages;
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

function render(values) {
  const running = values.turboquant_requests_running;
  const waiting = values.turboquant_requests_waiting;
  byId("server").replaceChildren(
    el("p", { class: "served mono" }, props.model),
    ...[cacheGauge(values), memoryGauge(values), hitGauge(values)].filter((gauge) => gauge !== null),
    el("p", { class: "load" }, el("span", { class: `dot ${running > 0 ? "busy" : ""}` }),
      `${count(running)} running, ${count(waiting)} waiting`,
      el("span", { class: "right", title: `turboquant ${props.version}` }, props.backend)));
}

async function refresh() {
  props ??= await getJson("props");
  render(parseMetrics(await getText("metrics")));
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
