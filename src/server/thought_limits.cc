#include "server/thought_limits.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "server/fields.h"

namespace tq::server {
namespace {

int64_t LimitOfEffort(std::string_view effort) {
  constexpr std::array<std::pair<std::string_view, int64_t>, 6> kLimits = {{{"minimal", 512},
                                                                            {"low", 2048},
                                                                            {"medium", 8192},
                                                                            {"high", 32768},
                                                                            {"xhigh", 65536},
                                                                            {"max", 131072}}};
  for (const auto& [name, limit] : kLimits) {
    if (name == effort) return limit;
  }
  return -1;
}

}  // namespace

Result<int64_t> ReadThoughtLimit(const RequestNode& body, ChatPromptOptions& prompt) {
  constexpr int64_t kMost = int64_t{1} << 40;
  const std::array fields = {body["thinking"]["budget_tokens"], body["reasoning"]["max_tokens"],
                             body["thinking_budget"], body["thinking_budget_tokens"]};
  std::optional<int64_t> limit;
  std::string found;
  for (const RequestNode& field : fields) {
    TQ_ASSIGN_OR_RETURN(const auto value, OptionalInt(field, -1, kMost));
    if (!value) continue;
    if (limit) {
      return InvalidArgument(
          fmt::format("{}: expected one budget of thoughts, found {} too", field.path(), found));
    }
    limit = value;
    found = field.path();
  }
  TQ_ASSIGN_OR_RETURN(const auto enabled, OptionalBool(body["reasoning"]["enabled"]));
  if (enabled && !prompt.enable_thinking) prompt.enable_thinking = enabled;
  if (!limit) return LimitOfEffort(prompt.reasoning_effort);
  if (*limit == 0) prompt.enable_thinking = false;
  return *limit;
}

}  // namespace tq::server
