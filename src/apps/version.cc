#include "apps/version.h"

#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/output.h"
#include "backend/backend.h"

namespace tq {
namespace {

std::string CompilerName() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("gcc {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

// "" where the system does not say.
std::string CpuModel() {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line)) {
    if (!line.starts_with("model name") && !line.starts_with("Model")) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

}  // namespace

std::string BuildText() {
  return fmt::format("{}, {}, {}", TQ_VERSION, TQ_BUILD_TYPE, CompilerName());
}

Status PrintVersion(bool json) {
  std::vector<std::string> available;
  for (const BackendChoice& choice : AvailableBackends()) {
    available.push_back(choice.backend + "/" + choice.isa);
  }
  const std::string cpu = CpuModel();
  if (json) {
    return WriteJson({{"version", TQ_VERSION},
                      {"build_type", TQ_BUILD_TYPE},
                      {"compiler", CompilerName()},
                      {"cpu", cpu},
                      {"chosen", available.front()},
                      {"available", available}});
  }
  return WriteOut(
      fmt::format("turboquant {}\nbuild     {}, {}\ncpu       {}\nchosen    {}\navailable {}\n",
                  TQ_VERSION, TQ_BUILD_TYPE, CompilerName(), cpu.empty() ? "unknown" : cpu,
                  available.front(), fmt::join(available, ", ")));
}

}  // namespace tq
