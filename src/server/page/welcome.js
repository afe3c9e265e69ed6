// What an empty conversation shows: who answers, and how.
import { el } from "./dom.js";
import { count } from "./format.js";

function samplingText({ temperature, top_p: topP, top_k: topK }) {
  if (temperature === 0) return "greedy";
  const parts = [`temperature ${Number(temperature.toFixed(3))}`];
  if (topP < 1) parts.push(`top p ${Number(topP.toFixed(3))}`);
  if (topK > 0) parts.push(`top k ${topK}`);
  return parts.join(", ");
}

const fact = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));

export function welcome(props) {
  if (props === null) return el("div", { class: "welcome" });
  return el("div", { class: "welcome" },
    el("h2", {}, props.model),
    el("dl", {},
      fact("Context", `${count(props.context_length)} tokens`),
      fact("Computes on", props.backend),
      fact("At once", `${count(props.max_batch)} requests`),
      fact("Sampling", samplingText(props.default_sampling)),
      fact("Tools", props.tools ? "yes" : "no"),
      fact("Thinking", { none: "as it is", switch: "can be switched", levels: "has levels" }[props.thinking])),
    el("p", { class: "dim small" }, "Questions go to this server alone; conversations stay in this browser."),
    !props.has_chat_template && el("p", { class: "notice" }, "This checkpoint has no chat template: it cannot hold conversations. /v1/completions continues texts."));
}
