// Finding: one thing that `doctor` looked at.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tq {

enum class FindingLevel : uint8_t { kOk, kWarn, kFail };

struct Finding {
  std::string id;  // "memory.available": stable, for scripts
  FindingLevel level = FindingLevel::kOk;
  std::string found;   // one line
  std::string advice;  // what to do; empty when all is well
};

using Findings = std::vector<Finding>;

}  // namespace tq
