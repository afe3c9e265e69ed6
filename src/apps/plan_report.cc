#include "apps/plan_report.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/output.h"
#include "apps/terminal.h"

namespace tq {
namespace {

std::string Bytes(int64_t n) { return HumanBytes(static_cast<double>(n)); }

int64_t GrowingLayers(const PlanReport& report) {
  return std::count_if(report.memory->needs.begin(), report.memory->needs.end(),
                       [](const CacheNeeds& needs) { return !needs.paged.empty(); });
}

int64_t KvBytesPerToken(const PlanReport& report) {
  return KvCache::BytesPerPage(report.memory->needs) / kPageTokens;
}

// Which of the conversions comes first among those that fit; null: none.
const PlanRecipe* BestRecipe(const PlanReport& report) {
  for (const PlanRecipe& recipe : report.recipes) {
    if (recipe.fit != Fit::kNone && !recipe.size.name.empty()) return &recipe;
  }
  return nullptr;
}

void AddLine(std::string& text, std::string_view name, const std::string& value) {
  text += fmt::format("{:<14}{}\n", name, value);
}

void AddMemory(const PlanReport& report, std::string& text) {
  const EngineMemory& engine = report.plan.engine;
  const EngineOptions& options = report.plan.options;
  const Backend& backend = *report.sized->backend;
  AddLine(text, "weights",
          fmt::format("{} prepared ({}/{}, {} matrices)", Bytes(engine.weights), backend.name(),
                      backend.isa(), report.sized->num_matrices));
  const int64_t layers = static_cast<int64_t>(report.memory->needs.size());
  const int64_t growing = GrowingLayers(report);
  AddLine(text, "KV cache",
          fmt::format("{}: {} a token ({}){}, window {} x {} {}", Bytes(engine.pages),
                      Bytes(KvBytesPerToken(report)), KvSettingsText(report.kv),
                      growing < layers ? fmt::format(", {} of {} layers", growing, layers) : "",
                      options.max_context, options.max_sequences,
                      options.max_sequences == 1 ? "request" : "requests"));
  if (engine.disk_copies > 0) {
    AddLine(text, "disk cache", Bytes(engine.disk_copies) + " of copies on their way to the disk");
  }
  if (engine.states > 0) {
    AddLine(
        text, "states",
        fmt::format("{} of running requests, {} of {} kept for the prefix cache",
                    Bytes(engine.states), Bytes(engine.checkpoints), options.state_checkpoints));
  }
  AddLine(
      text, "workspace",
      fmt::format("{} with prefill chunks of {}, logits and sampling {}", Bytes(engine.workspace),
                  options.prefill_chunk, Bytes(engine.logits + engine.sampling)));
  AddLine(text, "program", fmt::format("{} beside that", Bytes(report.plan.program)));
  if (report.sized->model->mapped_bytes() > 0) {
    AddLine(text, "mapped",
            fmt::format("{} of tables stay in the file and are not counted",
                        Bytes(report.sized->model->mapped_bytes())));
  }
  AddLine(text, "peak", Bytes(report.plan.peak()));
}

std::string MachineText(const PlanReport& report) {
  const Machine& machine = report.machine;
  if (machine.assumed) {
    return fmt::format("{}: {} of {} usable (assumed)", machine.name, Bytes(machine.most_bytes),
                       Bytes(machine.total_bytes));
  }
  std::string text =
      fmt::format("{}: {} free now, {} at most of {}", machine.name, Bytes(machine.usable_bytes),
                  Bytes(machine.most_bytes), Bytes(machine.total_bytes));
  if (report.system.container_limit >= 0) text += ", the container's limit";
  if (report.system.swap_total > 0) {
    text += fmt::format("; {} of swap do not count", Bytes(report.system.swap_total));
  }
  if (report.free_of_nodes.size() > 1) {
    text += fmt::format("; {} memory nodes", report.free_of_nodes.size());
  }
  return text;
}

std::string MostText(const PlanReport& report) {
  if (report.largest_context == 0) return "no window fits";
  std::string text = fmt::format("a window of {} tokens", report.largest_context);
  if (report.most_sequences > 0) {
    text += fmt::format(", or {}{} requests of {} tokens at a time", report.most_sequences,
                        report.most_sequences == kMostSequences ? " or more" : "",
                        report.plan.options.max_context);
  }
  return text;
}

std::string StreamedText(const PlanRecipe& recipe) {
  if (!recipe.streamed) return "-";
  const double speed = recipe.streamed->tokens_per_second;
  return Bytes(recipe.streamed->least_bytes) + (speed > 0 ? fmt::format(", {:.1f}", speed) : "");
}

void AddRecipes(const PlanReport& report, std::string& text) {
  if (report.recipes.empty()) return;
  std::vector<std::vector<std::string>> rows = {{"recipe", "bits/weight", "file", "loads in",
                                                 "peak", "fits", "tokens/s", "full window",
                                                 "from the disk", "quality", "what it is"}};
  for (const PlanRecipe& recipe : report.recipes) {
    rows.push_back(
        {recipe.size.name.empty() ? "(as it is)" : recipe.size.name,
         fmt::format("{:.2f}", recipe.size.bits_per_weight), Bytes(recipe.size.file_bytes),
         recipe.load_seconds > 0 ? fmt::format("{:.1f} s", recipe.load_seconds) : "?",
         Bytes(recipe.peak_bytes),
         recipe.fit == Fit::kResident       ? "yes"
         : recipe.fit == Fit::kAfterFreeing ? "after freeing"
                                            : "no",
         fmt::format("{:.1f}", recipe.tokens_per_second), fmt::format("{:.1f}", recipe.when_full),
         StreamedText(recipe), recipe.size.quality, recipe.size.text});
  }
  text += "\n" +
          FormatTable(rows, {false, true, true, true, true, false, true, true, true, false, false});
  text += fmt::format(
      "tokens/s: at most, {:.1f} GB/s over the bytes that a token reads, at the start and at the "
      "end of the window{}; quality: docs/quality.md\n",
      report.bandwidth * 1e-9,
      report.disk_speed > 0 ? fmt::format("; the disk reads {}/s", HumanBytes(report.disk_speed))
                            : "");
  if (report.recipes.front().streamed) {
    text +=
        "from the disk: the least memory, and tokens/s at most, if experts were read from the disk "
        "as they are used; this version keeps all of them in memory\n";
  }
  if (const PlanRecipe* best = BestRecipe(report)) {
    text += fmt::format("the most bits that fit: {}turboquant convert --hf-path {} --recipe {}\n",
                        report.source->is_remote ? "turboquant pull, then " : "",
                        report.source->model, best->size.name);
  }
}

OrderedJson ModelJson(const PlanReport& report) {
  OrderedJson json = {{"path", report.source->model},
                      {"source", report.source->is_remote ? "headers" : "local"}};
  if (report.source->headers != nullptr) {
    json["commit"] = report.source->headers->commit;
    json["downloaded_bytes"] = report.source->headers->downloaded_bytes;
  }
  if (!report.source->missing.empty()) json["missing"] = report.source->missing;
  if (report.sized == nullptr) return json;
  const ModelSpec& spec = report.sized->model->spec();
  json["type"] = spec.model_type;
  json["n_layers"] = spec.blocks.size();
  json["max_context"] = spec.max_position_embeddings;
  json["total_bytes"] = report.source->stored_bytes;
  json["prepared_bytes"] = report.plan.engine.weights;
  json["decode_bytes"] = report.sized->model->decode_bytes();
  json["mapped_bytes"] = report.sized->model->mapped_bytes();
  return json;
}

OrderedJson ProjectionJson(const PlanReport& report) {
  const EngineMemory& engine = report.plan.engine;
  const EngineOptions& options = report.plan.options;
  return {{"context", options.max_context},
          {"parallel", options.max_sequences},
          {"prefill_chunk", options.prefill_chunk},
          {"kv_type", KvSettingsText(report.kv)},
          {"kv_bytes_per_token", KvBytesPerToken(report)},
          {"kv_layers", GrowingLayers(report)},
          {"weight_bytes", engine.weights},
          {"kv_bytes", engine.pages},
          {"kv_exact_bytes", engine.exact_pages},
          {"state_bytes", engine.states},
          {"checkpoint_bytes", engine.checkpoints},
          {"state_checkpoints", options.state_checkpoints},
          {"logits_bytes", engine.logits},
          {"sampling_bytes", engine.sampling},
          {"disk_copies_bytes", engine.disk_copies},
          {"workspace_bytes", engine.workspace},
          {"engine_bytes", engine.total()},
          {"program_bytes", report.plan.program},
          {"load_peak_bytes", report.plan.load_peak},
          {"peak_bytes", report.plan.peak()},
          {"headroom_bytes", report.machine.usable_bytes - report.plan.peak()},
          {"largest_context", report.largest_context},
          {"most_parallel", report.most_sequences}};
}

OrderedJson RecipesJson(const PlanReport& report) {
  OrderedJson list = OrderedJson::array();
  for (const PlanRecipe& recipe : report.recipes) {
    OrderedJson streamed = nullptr;
    if (recipe.streamed) {
      streamed = {
          {"least_bytes", recipe.streamed->least_bytes},
          {"budget_bytes", recipe.streamed->budget_bytes},
          {"tokens_per_second_at_most", recipe.streamed->tokens_per_second > 0
                                            ? OrderedJson(recipe.streamed->tokens_per_second)
                                            : OrderedJson(nullptr)}};
    }
    list.push_back({{"recipe", recipe.size.name},
                    {"what", recipe.size.text},
                    {"quality", recipe.size.quality},
                    {"bits_per_weight", recipe.size.bits_per_weight},
                    {"matrix_bits", recipe.size.matrix_bits},
                    {"file_bytes", recipe.size.file_bytes},
                    {"prepared_bytes", recipe.size.prepared_bytes},
                    {"decode_bytes", recipe.size.decode_bytes},
                    {"peak_bytes", recipe.peak_bytes},
                    {"fit", FitName(recipe.fit)},
                    {"load_seconds", recipe.load_seconds > 0 ? OrderedJson(recipe.load_seconds)
                                                             : OrderedJson(nullptr)},
                    {"tokens_per_second_at_most", recipe.tokens_per_second},
                    {"tokens_per_second_when_full", recipe.when_full},
                    {"if_streamed", std::move(streamed)}});
  }
  return list;
}

}  // namespace

std::string PlanReport::VerdictName() const {
  return sized == nullptr ? "incomplete" : std::string(FitName(fit));
}

std::string PlanReport::FlagsText() const {
  std::string flags = fmt::format("--max-context {} --prefill-chunk {} --memory-gb {:.3f}",
                                  plan.options.max_context, plan.options.prefill_chunk,
                                  static_cast<double>(plan.limit_bytes()) * 1e-9);
  return kv.packed() ? flags + " " + KvFlagsText(kv) : flags;
}

std::string PlanReport::ServeFlagsText() const {
  return fmt::format("--max-batch {} --kv-tokens {}", plan.options.max_sequences,
                     plan.options.kv_tokens);
}

std::string KvFlagsText(const KvSettings& kv) {
  if (!kv.packed()) return "";
  std::string flags = fmt::format("--kv-type {}/{}", KvFormatName(kv.k), KvFormatName(kv.v));
  if (kv.min_tokens > 0) flags += fmt::format(" --kv-min-tokens {}", kv.min_tokens);
  if (kv.group_size != KvSettings().group_size) {
    flags += fmt::format(" --kv-group-size {}", kv.group_size);
  }
  return flags;
}

std::string ShortfallText(const PlanReport& report) {
  if (report.sized == nullptr) {
    return fmt::format("{}: incomplete: {}: download the rest (`turboquant pull`)",
                       report.source->model, report.source->missing);
  }
  std::string text = fmt::format(
      "{} with a window of {} tokens: expected at most {} on {}, found a need of {}, {} too much",
      report.source->model, report.plan.options.max_context, Bytes(report.machine.most_bytes),
      report.machine.name, Bytes(report.plan.peak()),
      Bytes(report.plan.peak() - report.machine.most_bytes));
  if (report.smaller_kv) return text + ": " + KvFlagsText(*report.smaller_kv) + " makes it fit";
  if (report.largest_context > 0) {
    return text + fmt::format(": --context {} fits", report.largest_context);
  }
  if (const PlanRecipe* best = BestRecipe(report)) {
    return text + fmt::format(": `turboquant convert --recipe {}` makes it fit", best->size.name);
  }
  return text +
         ": no window fits: use a smaller model, or fewer bits (`plan --machine` ranks them)";
}

std::string PlanText(const PlanReport& report) {
  std::string text;
  if (report.sized == nullptr) {
    AddLine(text, "model", fmt::format("{}: {}", report.source->model, report.source->missing));
    AddLine(text, "verdict", "incomplete: nothing can be said of a model without its files");
    return text;
  }
  const ModelSpec& spec = report.sized->model->spec();
  AddLine(text, "model",
          fmt::format("{}{}: {}, {} layers, {} stored", report.source->model,
                      report.source->is_remote ? " (headers)" : "", spec.model_type,
                      spec.blocks.size(), Bytes(report.source->stored_bytes)));
  AddMemory(report, text);
  AddLine(text, "machine", MachineText(report));
  if (report.vram_bytes) {
    const bool fits = report.plan.engine.total() <= *report.vram_bytes;
    AddLine(text, "GPU memory",
            fmt::format("{} of {}: {}", Bytes(report.plan.engine.total()),
                        Bytes(*report.vram_bytes), fits ? "all of it fits" : "does not fit"));
  }
  AddLine(
      text, "verdict",
      fmt::format("{} with a window of {} tokens{}", report.VerdictName(),
                  report.plan.options.max_context,
                  report.fit == Fit::kResident
                      ? ", " + Bytes(report.machine.usable_bytes - report.plan.peak()) + " to spare"
                      : ""));
  AddLine(text, "at most", MostText(report));
  if (report.fit != Fit::kNone) {
    AddLine(text, "recommended", report.FlagsText());
    AddLine(text, "", "serve: " + report.ServeFlagsText() + " beside these");
  }
  for (const std::string& warning : report.warnings) AddLine(text, "warning", warning);
  AddRecipes(report, text);
  return text;
}

OrderedJson PlanJson(const PlanReport& report) {
  OrderedJson json = {{"schema", 1}, {"model", ModelJson(report)}};
  json["machine"] = {{"name", report.machine.name},
                     {"assumed", report.machine.assumed},
                     {"ram_bytes", report.machine.total_bytes},
                     {"usable_bytes", report.machine.usable_bytes},
                     {"most_bytes", report.machine.most_bytes}};
  if (!report.machine.assumed) {
    json["machine"]["container_limited"] = report.system.container_limit >= 0;
    json["machine"]["swap_bytes"] = std::max<int64_t>(0, report.system.swap_total);
    json["machine"]["free_of_nodes"] = report.free_of_nodes;
  }
  if (report.vram_bytes) json["machine"]["vram_bytes"] = *report.vram_bytes;
  if (report.sized != nullptr) json["projection"] = ProjectionJson(report);
  json["verdict"] = {{"mode", report.VerdictName()},
                     {"runnable", report.sized != nullptr && report.fit != Fit::kNone}};
  if (report.sized != nullptr && report.vram_bytes) {
    json["verdict"]["fits_vram"] = report.plan.engine.total() <= *report.vram_bytes;
  }
  json["flags"] = OrderedJson::object();
  if (report.sized != nullptr && report.fit != Fit::kNone) {
    json["flags"] = {{"max_context", report.plan.options.max_context},
                     {"prefill_chunk", report.plan.options.prefill_chunk},
                     {"max_sequences", report.plan.options.max_sequences},
                     {"kv_tokens", report.plan.options.kv_tokens},
                     {"memory_gb", static_cast<double>(report.plan.limit_bytes()) * 1e-9}};
    if (report.kv.packed()) {
      json["flags"]["kv_type"] =
          fmt::format("{}/{}", KvFormatName(report.kv.k), KvFormatName(report.kv.v));
      json["flags"]["kv_min_tokens"] = report.kv.min_tokens;
      json["flags"]["kv_group_size"] = report.kv.group_size;
    }
  }
  json["warnings"] = report.warnings;
  if (!report.recipes.empty()) {
    json["machine"]["bandwidth"] = report.bandwidth;
    json["machine"]["disk_speed"] =
        report.disk_speed > 0 ? OrderedJson(report.disk_speed) : OrderedJson(nullptr);
    json["recipes"] = RecipesJson(report);
  }
  return json;
}

}  // namespace tq
