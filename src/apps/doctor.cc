// turboquant doctor: is this machine, and is this checkpoint, in order? Changes nothing.
#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/doctor_machine.h"
#include "apps/doctor_model.h"
#include "apps/flags.h"
#include "apps/hub_flags.h"
#include "apps/output.h"
#include "base/file.h"

namespace tq {
namespace {

struct DoctorFlags {
  CommonFlags common;
  std::string model;
  int port = 8080;
};

std::string_view LevelName(FindingLevel level) {
  switch (level) {
    case FindingLevel::kOk:
      return "ok";
    case FindingLevel::kWarn:
      return "warn";
    case FindingLevel::kFail:
      break;
  }
  return "FAIL";
}

std::string Coloured(FindingLevel level) {
  const int colour = level == FindingLevel::kOk ? 32 : level == FindingLevel::kWarn ? 33 : 31;
  return fmt::format("\033[{}m{:4}\033[0m", colour, LevelName(level));
}

std::string ReportText(const Findings& findings, bool colour) {
  size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.id.size());
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format(
        "{}  {:{}}  {}\n",
        colour ? Coloured(finding.level) : fmt::format("{:4}", LevelName(finding.level)),
        finding.id, width, finding.found);
    if (!finding.advice.empty()) {
      text += fmt::format("{:4}  {:{}}  -> {}\n", "", "", width, finding.advice);
    }
  }
  return text;
}

OrderedJson ReportJson(const Findings& findings, size_t num_failed) {
  OrderedJson json = {{"ok", num_failed == 0}};
  json["findings"] = OrderedJson::array();
  for (const Finding& finding : findings) {
    const std::string level =
        finding.level == FindingLevel::kFail ? "fail" : std::string(LevelName(finding.level));
    json["findings"].push_back({{"id", finding.id},
                                {"level", level},
                                {"found", finding.found},
                                {"advice", finding.advice}});
  }
  return json;
}

// Where the model is, or would go.
std::string FolderOf(const std::string& model) {
  if (model.empty() || !FileExists(model)) return ".";
  if (IsDirectory(model)) return model;
  const size_t slash = model.rfind('/');
  return slash == std::string::npos ? "." : model.substr(0, slash + 1);
}

Status RunDoctor(const DoctorFlags& flags) {
  Findings findings;
  const MachineFacts machine = CheckMachine(FolderOf(flags.model), flags.port, findings);
  if (!flags.model.empty()) CheckModel(flags.model, machine.available_bytes, findings);
  const auto num_failed = static_cast<size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [](const Finding& finding) { return finding.level == FindingLevel::kFail; }));
  TQ_RETURN_IF_ERROR(flags.common.json
                         ? WriteJson(ReportJson(findings, num_failed))
                         : WriteOut(ReportText(findings, MakeConsole(false).out_colour)));
  if (num_failed == 0) return Status::Ok();
  return InvalidArgument(
      fmt::format("{} of {} checks failed: see above", num_failed, findings.size()));
}

}  // namespace

RunCommand RegisterDoctor(CLI::App& app) {
  const auto flags = std::make_shared<DoctorFlags>();
  app.add_option("--model", flags->model,
                 "Checkpoint to look at: a folder in Hugging Face layout, or a .gguf file")
      ->transform(ModelPath());
  app.add_option("--port", flags->port, "Port that should be free; 0: do not look")
      ->check(InRange(0, 65535))
      ->capture_default_str();
  AddCommonFlags(app, flags->common, Compute::kNone);
  SetExamples(app, {"turboquant doctor", "turboquant doctor --model Qwen3-8B-3bit",
                    "turboquant doctor --model model.gguf --json"});
  return [flags](Interrupts&) { return RunDoctor(*flags); };
}

}  // namespace tq
