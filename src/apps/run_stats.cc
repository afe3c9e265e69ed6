#include "apps/run_stats.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "apps/terminal.h"
#include "base/file.h"
#include "base/json.h"

namespace tq {
namespace {

double PerSecond(int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

// "900" or "900 (832 cached)".
std::string PromptTokens(const GenerateStats& stats) {
  if (stats.cached_tokens == 0) return fmt::format("{}", stats.prompt_tokens);
  return fmt::format("{} ({} cached)", stats.prompt_tokens, stats.cached_tokens);
}

}  // namespace

int64_t PeakMemoryBytes() {
  // Not inherited from the program that started this one, as the other is.
  const Result<std::string> status = ReadTextFile("/proc/self/status", 1 << 16);
  constexpr std::string_view kKey = "VmHWM:";
  const size_t at = status.ok() ? status->find(kKey) : std::string::npos;
  if (at != std::string::npos) return std::atoll(status->c_str() + at + kKey.size()) * 1024;
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return int64_t{usage.ru_maxrss} * 1024;
}

RunStats MakeRunStats(const ModelSession& session, const GenerateStats& engine, double bandwidth) {
  RunStats stats;
  stats.engine = engine;
  stats.prompt_tokens_per_second =
      PerSecond(engine.prompt_tokens - engine.cached_tokens, engine.prefill_seconds);
  // The first token is the prompt's work.
  stats.generated_tokens_per_second =
      PerSecond(std::max<int64_t>(engine.generated_tokens - 1, 0), engine.decode_seconds);
  stats.weight_bytes_per_second =
      stats.generated_tokens_per_second * static_cast<double>(session.model().decode_bytes());
  stats.bandwidth = bandwidth;
  stats.peak_memory_bytes = PeakMemoryBytes();
  return stats;
}

std::string StatsText(const RunStats& stats, FinishReason reason) {
  std::string text = fmt::format(
      "prompt   {} tokens, {:.1f} tokens/s\nanswer   {} tokens, {:.1f} tokens/s, end: {}\n",
      PromptTokens(stats.engine), stats.prompt_tokens_per_second, stats.engine.generated_tokens,
      stats.generated_tokens_per_second, FinishReasonName(reason));
  text += fmt::format("weights  {}/s read", HumanBytes(stats.weight_bytes_per_second));
  if (stats.bandwidth > 0) {
    text += fmt::format(", {:.0f} % of the measured {}/s",
                        100 * stats.weight_bytes_per_second / stats.bandwidth,
                        HumanBytes(stats.bandwidth));
  }
  text +=
      fmt::format("\nmemory   {} peak", HumanBytes(static_cast<double>(stats.peak_memory_bytes)));
  return text;
}

std::string StatsLine(const RunStats& stats) {
  return fmt::format("{} + {} tokens, {:.1f} + {:.1f} tokens/s", PromptTokens(stats.engine),
                     stats.engine.generated_tokens, stats.prompt_tokens_per_second,
                     stats.generated_tokens_per_second);
}

OrderedJson StatsJson(const RunStats& stats) {
  OrderedJson json = {{"prompt_tokens", stats.engine.prompt_tokens},
                      {"cached_tokens", stats.engine.cached_tokens},
                      {"prompt_tokens_per_second", stats.prompt_tokens_per_second},
                      {"generated_tokens", stats.engine.generated_tokens},
                      {"generated_tokens_per_second", stats.generated_tokens_per_second},
                      {"prefill_seconds", stats.engine.prefill_seconds},
                      {"decode_seconds", stats.engine.decode_seconds},
                      {"weight_gb_per_second", stats.weight_bytes_per_second * 1e-9}};
  if (stats.bandwidth > 0) {
    json["bandwidth_gb_per_second"] = stats.bandwidth * 1e-9;
    json["bandwidth_share"] = stats.weight_bytes_per_second / stats.bandwidth;
  }
  json["peak_memory_bytes"] = stats.peak_memory_bytes;
  return json;
}

}  // namespace tq
