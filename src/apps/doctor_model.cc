#include "apps/doctor_model.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "api/text_assets.h"
#include "apps/checkpoint_report.h"
#include "apps/doctor_quantization.h"
#include "apps/missing_shards.h"
#include "apps/terminal.h"
#include "backend/backend.h"
#include "base/file.h"
#include "eval/disk_speed.h"
#include "plan/planner.h"
#include "weights/safetensors.h"
#include "weights/source.h"

namespace tq {
namespace {

std::string Bytes(int64_t n) { return HumanBytes(static_cast<double>(n)); }

void Add(Findings& findings, const char* id, const Status& status, const std::string& well,
         const std::string& advice) {
  if (status.ok()) {
    findings.push_back({id, FindingLevel::kOk, well, ""});
  } else {
    findings.push_back({id, FindingLevel::kFail, status.message(), advice});
  }
}

// The weight files of a checkpoint: itself, or those of its folder.
std::vector<std::string> WeightFiles(const std::string& path) {
  if (!IsDirectory(path)) return {path};
  std::vector<std::string> files;
  const Result<std::vector<std::string>> names = ListDirectory(path);
  if (!names.ok()) return files;
  for (const std::string& name : *names) {
    if (name.ends_with(".safetensors")) files.push_back(path + "/" + name);
  }
  return files;
}

// Each file for itself, so that all bad ones are named at once.
void CheckFiles(const std::vector<std::string>& files, Findings& findings) {
  int64_t bytes = 0;
  size_t bad = 0;
  for (const std::string& file : files) {
    const auto mapped = MappedFile::Open(file);
    Status status = mapped.status();
    if (mapped.ok()) {
      bytes += static_cast<int64_t>((*mapped)->bytes().size());
      if (file.ends_with(".safetensors")) {
        status = ParseSafetensors((*mapped)->bytes(), file).status();
      }
    }
    if (status.ok()) continue;
    ++bad;
    findings.push_back({"model.file", FindingLevel::kFail, status.message(),
                        "download this file again: its length is not what its header says, or it "
                        "is damaged"});
  }
  if (bad > 0) return;
  findings.push_back(
      {"model.files", FindingLevel::kOk,
       fmt::format("{} of {}, whole by their headers",
                   files.size() == 1 ? "1 file" : fmt::format("{} files", files.size()),
                   Bytes(bytes)),
       ""});
}

void CheckDiskSpeed(const std::vector<std::string>& files, int64_t stored_bytes,
                    Findings& findings) {
  const auto largest =
      std::max_element(files.begin(), files.end(), [](const auto& a, const auto& b) {
        std::error_code error;
        return std::filesystem::file_size(a, error) < std::filesystem::file_size(b, error);
      });
  if (largest == files.end()) return;
  const double speed = MeasureDiskSpeed(*largest);
  if (speed == 0) return;
  constexpr double kSlow = 100e6;
  const bool slow = speed < kSlow;
  findings.push_back({"disk.speed", slow ? FindingLevel::kWarn : FindingLevel::kOk,
                      fmt::format("{}/s: reading the weights takes about {:.1f} s when they are "
                                  "not in memory",
                                  HumanBytes(speed), static_cast<double>(stored_bytes) / speed),
                      slow ? "move the checkpoint to a faster disk" : ""});
}

void CheckTexts(const WeightSource& source, Findings& findings) {
  const Result<TextAssets> assets = LoadTextAssets(source);
  if (!assets.ok()) {
    Add(findings, "model.documents", assets.status(), "", "download the named file again");
    return;
  }
  Add(findings, "model.tokenizer", assets->tokenizer_status, "readable",
      "put the publisher's tokenizer files beside the weights; token ids work without");
  if (assets->chat_status.ok() && !assets->chat) {
    findings.push_back({"model.chat_template", FindingLevel::kWarn, "none",
                        "`chat` needs one: put chat_template.jinja beside the weights, or use an "
                        "instruction-tuned model"});
  } else {
    Add(findings, "model.chat_template", assets->chat_status, "usable",
        "put another chat_template.jinja beside the weights");
  }
  if (assets->end_ids.empty()) {
    findings.push_back({"model.end_tokens", FindingLevel::kWarn, "none",
                        "answers end at --max-tokens only: set eos_token_id in "
                        "generation_config.json"});
  }
}

// As `turboquant plan` says it, for a short conversation.
Result<MemoryPlan> PlanMemory(const WeightSource& source, int64_t context) {
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend, MakeBackend("", {}));
  TQ_ASSIGN_OR_RETURN(const SizedModel sized, SizeModel(source, *backend));
  const ModelMemory memory = MemoryOf(*sized.model, *sized.backend, KvFormat::kF16);
  const Planner planner(memory,
                        {.num_threads = backend->num_threads(),
                         .num_matrices = sized.num_matrices,
                         .float_bytes = sized.float_bytes,
                         .vocab_size = memory.vocab_size},
                        sized.load_peak);
  EngineOptions options;
  options.max_context = std::min(context, memory.max_position_embeddings);
  options.max_sequences = 1;
  return planner.Plan(options);
}

void CheckFit(const WeightSource& source, int64_t available_bytes, Findings& findings) {
  constexpr int64_t kContext = 4096;
  const Result<MemoryPlan> plan = PlanMemory(source, kContext);
  if (!plan.ok()) {
    findings.push_back({"fit.memory", FindingLevel::kWarn, plan.status().message(),
                        "mend or download again what the message names"});
    return;
  }
  const bool fits = plan->peak() < available_bytes;
  findings.push_back(
      {"fit.memory", fits ? FindingLevel::kOk : FindingLevel::kWarn,
       fmt::format("{} with a window of {} tokens, of {} available", Bytes(plan->peak()),
                   plan->options.max_context, Bytes(available_bytes)),
       fits ? "" : "`turboquant plan --machine` ranks conversions that fit; or free memory"});
}

void CheckArchitecture(const WeightSource& source, int64_t available_bytes,
                       const std::vector<std::string>& files, Findings& findings) {
  const Result<CheckpointReport> report = ReportCheckpoint(source);
  if (!report.ok()) {
    Add(findings, "model.tensors", report.status(), "",
        "the checkpoint is incomplete or its config.json is another model's: download it again");
    return;
  }
  CheckDiskSpeed(files, report->stored_bytes, findings);
  if (!report->not_runnable.empty()) {
    findings.push_back({"model.architecture", FindingLevel::kFail, report->not_runnable,
                        "this version cannot run it: docs/models.md lists what it can"});
    return;
  }
  findings.push_back({"model.architecture", FindingLevel::kOk,
                      fmt::format("{}, {} layers: all tensors are there", report->spec->model_type,
                                  report->spec->blocks.size()),
                      ""});
  CheckQuantization(source, *report, findings);
  CheckFit(source, available_bytes, findings);
}

}  // namespace

void CheckModel(const std::string& path, int64_t available_bytes, Findings& findings) {
  if (!FileExists(path)) {
    findings.push_back({"model.path", FindingLevel::kFail, path + ": not found",
                        "name a folder in Hugging Face layout, or a .gguf file"});
    return;
  }
  const std::vector<std::string> files = WeightFiles(path);
  CheckFiles(files, findings);
  if (const std::string missing = IsDirectory(path) ? MissingShards(path) : ""; !missing.empty()) {
    findings.push_back({"model.shards", FindingLevel::kFail, missing,
                        "download the rest: `turboquant pull`, or the publisher's page"});
  }
  const Result<std::unique_ptr<WeightSource>> source = OpenSource(path);
  if (!source.ok()) {
    Add(findings, "model.readable", source.status(), "",
        "mend or download again what the message names");
    return;
  }
  CheckArchitecture(**source, available_bytes, files, findings);
  CheckTexts(**source, findings);
}

}  // namespace tq
