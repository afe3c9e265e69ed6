// turboquant inspect: what a checkpoint holds and how it would run here.
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/checkpoint_report.h"
#include "apps/command.h"
#include "apps/flags.h"
#include "apps/output.h"
#include "base/json.h"
#include "model/describe.h"

namespace tq {
namespace {

struct InspectFlags {
  CommonFlags common;
  std::string model;
  bool headers_only = false;
  bool tensors = false;
};

std::string Bytes(int64_t n) { return HumanBytes(static_cast<double>(n)); }

KvSettings KvSettingsOf(const InspectFlags& flags) {
  return KvSettingsFor(BackendOptionsOf(flags.common).activations);
}

// Runs of equal blocks, in order: "3 x Gated DeltaNet, dense (silu)".
struct BlockRun {
  int count = 0;
  std::string mixer;
  std::string ffn;
  std::string residual;
};
std::vector<BlockRun> BlockRuns(const ModelSpec& spec) {
  std::vector<BlockRun> runs;
  for (const BlockSpec& block : spec.blocks) {
    BlockRun run = {1, DescribeMixer(block), DescribeFfn(block), DescribeResidual(block)};
    const bool same = !runs.empty() && runs.back().mixer == run.mixer && runs.back().ffn == run.ffn;
    if (same) {
      ++runs.back().count;
    } else {
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

OrderedJson SpecJson(const ModelSpec& spec) {
  OrderedJson json = {{"model_type", spec.model_type},
                      {"num_hidden_layers", spec.blocks.size()},
                      {"hidden_size", spec.hidden_size},
                      {"vocab_size", spec.vocab_size},
                      {"max_position_embeddings", spec.max_position_embeddings},
                      {"tie_word_embeddings", spec.tie_word_embeddings}};
  json["blocks"] = OrderedJson::array();
  for (const BlockRun& run : BlockRuns(spec)) {
    json["blocks"].push_back(
        {{"count", run.count}, {"mixer", run.mixer}, {"ffn", run.ffn}, {"residual", run.residual}});
  }
  if (!spec.blocks.empty()) {
    const BlockSpec& block = spec.blocks.front();
    if (const auto* attention = std::get_if<AttentionSpec>(&block.mixer)) {
      json["num_attention_heads"] = attention->num_attention_heads;
      json["num_key_value_heads"] = attention->num_key_value_heads;
      json["head_dim"] = attention->head_dim;
    }
    if (const auto* dense = std::get_if<DenseFfnSpec>(&block.ffn)) {
      json["intermediate_size"] = dense->intermediate_size;
    }
  }
  return json;
}

OrderedJson TensorsJson(const WeightSource& source) {
  OrderedJson list = OrderedJson::array();
  for (const SourceTensor& tensor : source.tensors()) {
    list.push_back({{"name", tensor.name},
                    {"type", StoredTypeName(tensor)},
                    {"shape", tensor.shape},
                    {"bytes", tensor.bytes.size()}});
  }
  return list;
}

Status PrintJson(const InspectFlags& flags, const WeightSource& source,
                 const CheckpointReport& report, const ModelSession* session) {
  OrderedJson json = {{"path", source.path()},
                      {"container", source.container()},
                      {"num_tensors", source.tensors().size()},
                      {"stored_bytes", report.stored_bytes},
                      {"runnable", report.not_runnable.empty()}};
  if (!report.not_runnable.empty()) json["reason"] = report.not_runnable;
  if (report.spec) {
    json["model"] = SpecJson(*report.spec);
    json["kv_bytes_per_token"] = KvBytesPerToken(*report.spec, KvSettingsOf(flags));
  }
  if (report.parts.mapped_bytes > 0) json["mapped_bytes"] = report.parts.mapped_bytes;
  for (const CheckpointParts::Unused& unused : report.parts.unused) {
    json["unused"].push_back(
        {{"part", unused.part}, {"tensors", unused.num_tensors}, {"bytes", unused.bytes}});
  }
  if (session != nullptr) {
    const Backend& backend = session->backend();
    json["backend"] = backend.name();
    json["isa"] = backend.isa();
    json["threads"] = backend.num_threads();
    json["activations"] = flags.common.activations;
    json["prepared_bytes"] = session->model().prepared_bytes();
    json["decode_bytes"] = session->model().decode_bytes();
  }
  json["matrices"] = KindsJson(report);
  if (flags.tensors) json["tensors"] = TensorsJson(source);
  return WriteJson(json);
}

std::string SpecText(const ModelSpec& spec) {
  std::string text = fmt::format(
      "architecture  {}: {} layers, hidden size {}, vocabulary {}, context {}", spec.model_type,
      spec.blocks.size(), spec.hidden_size, spec.vocab_size, spec.max_position_embeddings);
  if (!spec.blocks.empty()) {
    if (const auto* mixer = std::get_if<AttentionSpec>(&spec.blocks.front().mixer)) {
      text += fmt::format(", {} heads and {} KV heads of {}", mixer->num_attention_heads,
                          mixer->num_key_value_heads, mixer->head_dim);
    }
  }
  text += "\n";
  // The pattern of a hybrid repeats: its first runs tell it.
  constexpr size_t kShown = 6;
  const std::vector<BlockRun> runs = BlockRuns(spec);
  for (size_t i = 0; i < runs.size() && i < kShown; ++i) {
    text += fmt::format("{:<14}{} x {}, {}\n", i == 0 ? "blocks" : "", runs[i].count, runs[i].mixer,
                        runs[i].ffn);
  }
  if (runs.size() > kShown) text += fmt::format("{:<14}and so on\n", "");
  return text;
}

std::string TensorsTable(const WeightSource& source) {
  std::vector<std::vector<std::string>> rows = {{"tensor", "type", "shape", "bytes"}};
  for (const SourceTensor& tensor : source.tensors()) {
    rows.push_back({tensor.name, StoredTypeName(tensor), ShapeString(tensor.shape),
                    fmt::to_string(tensor.bytes.size())});
  }
  return FormatTable(rows, {false, false, false, true});
}

Status PrintText(const InspectFlags& flags, const WeightSource& source,
                 const CheckpointReport& report, const ModelSession* session) {
  std::string text =
      fmt::format("checkpoint    {} ({}): {} in {} tensors\n", source.path(), source.container(),
                  Bytes(report.stored_bytes), source.tensors().size());
  if (report.spec) {
    text += SpecText(*report.spec);
    text += fmt::format("KV cache      {} a token ({})\n",
                        Bytes(KvBytesPerToken(*report.spec, KvSettingsOf(flags))),
                        KvSettingsText(KvSettingsOf(flags)));
  }
  const std::string unused = UnusedText(report.parts);
  if (!unused.empty()) text += fmt::format("not used      {}\n", unused);
  if (report.parts.mapped_bytes > 0) {
    text += fmt::format("mapped        {} of tables stay in the file, rows are read when needed\n",
                        Bytes(report.parts.mapped_bytes));
  }
  if (session != nullptr) {
    const Backend& backend = session->backend();
    text += fmt::format("backend       {}/{}, {} activations, {} threads\n", backend.name(),
                        backend.isa(), flags.common.activations, backend.num_threads());
    text += fmt::format("memory        {} of prepared weights, {} of them read for a token\n",
                        Bytes(session->model().prepared_bytes()),
                        Bytes(session->model().decode_bytes()));
  }
  if (!report.not_runnable.empty()) text += fmt::format("not runnable  {}\n", report.not_runnable);
  text += "\n" + KindsTable(report);
  if (flags.tensors) text += "\n" + TensorsTable(source);
  return WriteOut(text);
}

Status RunInspect(const InspectFlags& flags) {
  const Console console = MakeConsole(flags.common.quiet);
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<WeightSource> source, OpenSource(flags.model));
  TQ_ASSIGN_OR_RETURN(CheckpointReport report, ReportCheckpoint(*source));
  std::unique_ptr<ModelSession> session;
  if (!flags.headers_only && report.spec) {
    Result<std::unique_ptr<ModelSession>> opened = OpenSession(flags.model, flags.common, console);
    if (opened.ok()) {
      session = std::move(opened).value();
      AddPrepared(session->model(), report);
    } else if (opened.status().code() == StatusCode::kUnsupported) {
      report.not_runnable = opened.status().message();
    } else {
      return opened.status();
    }
  }
  return flags.common.json ? PrintJson(flags, *source, report, session.get())
                           : PrintText(flags, *source, report, session.get());
}

}  // namespace

RunCommand RegisterInspect(CLI::App& app) {
  const auto flags = std::make_shared<InspectFlags>();
  AddModelFlag(app, flags->model);
  app.add_flag("--headers-only", flags->headers_only, "Do not load the weights");
  app.add_flag("--tensors", flags->tensors, "List all tensors");
  AddCommonFlags(app, flags->common, Compute::kModel);
  SetExamples(app, {"turboquant inspect --model Qwen3-8B-3bit",
                    "turboquant inspect --model model.gguf --headers-only --tensors",
                    "turboquant inspect --model Qwen3-8B-3bit --backend ref --json"});
  return [flags](Interrupts&) { return RunInspect(*flags); };
}

}  // namespace tq
