// One answer on its way from the server into a message.
//
// A message of the assistant: content, reasoning, calls: [{id, name, arguments}], state ("running",
// "done", "stopped", "failed"), begun (a time), finish ("stop", "length", "tool_calls"), error, stats: {prompt, cached,
// generated, firstMs, streamMs, events, isExact}, thoughtMs. stats come from the server once the answer is
// complete; until then events are counted.
import { ApiError, post } from "./api.js";
import { requestFields, settings } from "./settings.js";
import { eventData } from "./sse.js";

export const newAnswer = () => ({
  role: "assistant",
  content: "",
  reasoning: "",
  calls: [],
  state: "running",
  begun: Date.now(),
  stats: { generated: 0, isExact: false },
});

// Calls of an answer that was cut are no calls.
const callsOf = (message) =>
  message.state === "stopped" || message.state === "failed" ? [] : (message.calls ?? []).filter(Boolean);

function assistantMessage(message) {
  const said = { role: "assistant", content: message.content };
  if (message.reasoning) said.reasoning_content = message.reasoning;
  const calls = callsOf(message);
  if (calls.length > 0) {
    said.tool_calls = calls.map(({ id, name, arguments: text }) => ({ id, type: "function", function: { name, arguments: text } }));
  }
  return said;
}

// What the request says of the conversation so far.
function requestMessages(messages) {
  const said = [];
  if (settings.system.trim() !== "") said.push({ role: "system", content: settings.system });
  const results = new Map(messages.filter(({ role }) => role === "tool").map(({ id, content }) => [id, content]));
  for (const message of messages) {
    if (message.role === "user") said.push({ role: "user", content: message.content });
    if (message.role !== "assistant" || message.state === "running") continue;
    const calls = callsOf(message);
    if (message.content === "" && calls.length === 0) continue;
    said.push(assistantMessage(message));
    for (const { id } of calls) said.push({ role: "tool", tool_call_id: id, content: results.get(id) ?? "No result." });
  }
  return said;
}

// Whether there was something in it.
function takeDelta(message, delta) {
  if (delta.reasoning_content) message.reasoning += delta.reasoning_content;
  if (delta.content) message.content += delta.content;
  for (const part of delta.tool_calls ?? []) {
    const call = (message.calls[part.index] ??= { id: "", name: "", arguments: "" });
    if (part.id) call.id = part.id;
    if (part.function?.name) call.name += part.function.name;
    if (part.function?.arguments) call.arguments += part.function.arguments;
  }
  return Boolean(delta.reasoning_content || delta.content || delta.tool_calls?.length);
}

function takeUsage(stats, usage) {
  stats.prompt = usage.prompt_tokens;
  stats.cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
  stats.generated = usage.completion_tokens;
  stats.isExact = true;
}

// Resolves when it is complete; throws when it will not be. changed(): the message has more.
export async function receiveAnswer(messages, message, signal, changed) {
  const started = performance.now();
  const stats = message.stats;
  const body = { messages: requestMessages(messages), stream: true, stream_options: { include_usage: true }, ...requestFields() };
  const response = await post("v1/chat/completions", body, signal);
  for await (const data of eventData(response.body)) {
    if (data === "[DONE]") return;
    const chunk = JSON.parse(data);
    if (chunk.error) throw new ApiError(chunk.error.message);
    if (chunk.usage) takeUsage(stats, chunk.usage);
    const choice = chunk.choices?.[0];
    if (choice === undefined) continue;
    if (choice.finish_reason) message.finish = choice.finish_reason;
    if (takeDelta(message, choice.delta ?? {})) {
      const now = performance.now() - started;
      stats.firstMs ??= now;
      stats.streamMs = now - stats.firstMs;
      stats.generated += 1;
      stats.events = stats.generated;
      if (message.reasoning !== "" && message.content === "" && message.calls.length === 0) message.thoughtMs = stats.streamMs;
    }
    changed();
  }
  throw new ApiError("The connection ended before the answer did.");
}
