// turboquant evaluate: perplexity of a text, the divergence from a reference model on it, the
// logits of given ids for a comparison, or several of it for a list of checkpoints
// (evaluate_list.h).
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/evaluate_list.h"
#include "apps/flags.h"
#include "apps/hub_flags.h"
#include "apps/kv_flags.h"
#include "apps/output.h"
#include "apps/token_file.h"
#include "base/file.h"
#include "eval/divergence.h"
#include "eval/kv_table.h"
#include "eval/logits_file.h"
#include "eval/perplexity.h"

namespace tq {
namespace {

struct EvaluateFlags {
  CommonFlags common;
  EvaluateListFlags list;
  std::string model;
  std::string reference;
  std::string tokens;
  std::string logits;
  KvFlags kv;
  std::string kv_list;
  bool hidden = false;
  std::string text;
  int64_t seq_len = 512;
  int64_t num_samples = 512;
  int64_t prefill_chunk = 0;
};

Status RunLogits(const EvaluateFlags& flags, ModelSession& session, Interrupts& interrupts,
                 const Console& console) {
  TQ_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, ReadTokenFile(flags.tokens));
  std::atomic<bool> cancel{false};
  const Interrupts::Scope scope(interrupts, [&cancel] { cancel = true; });
  ProgressBar bar(console, "evaluating", HumanCount, " tokens");
  LogitsOptions options;
  options.hidden = flags.hidden;
  options.prefill_chunk = flags.prefill_chunk;
  options.kv = session.kv();
  options.cancel = &cancel;
  options.progress = [&bar](int64_t done, int64_t total) { bar.Update(done, total); };
  const Status status = WriteLogits(session.model(), session.backend(), ids, flags.logits, options);
  bar.Erase();
  TQ_RETURN_IF_ERROR(status);
  if (flags.common.json) {
    return WriteJson({{"logits", flags.logits},
                      {"tokens", ids.size()},
                      {"vocab_size", session.model().spec().vocab_size}});
  }
  if (!console.quiet) {
    PrintNote(console, fmt::format("{} tokens written to {}", ids.size(), flags.logits));
  }
  return Status::Ok();
}

Status ReportPerplexity(const EvaluateFlags& flags, size_t text_tokens,
                        const PerplexityReport& report) {
  const double rate = static_cast<double>(report.tokens) / std::max(report.seconds, 1e-9);
  if (flags.common.json) {
    return WriteJson({{"perplexity", report.perplexity},
                      {"mean_nll", report.mean_nll},
                      {"chunks", report.chunks},
                      {"seq_len", flags.seq_len},
                      {"tokens", report.tokens},
                      {"targets", report.targets},
                      {"text_tokens", text_tokens},
                      {"activations", flags.common.activations},
                      {"seconds", report.seconds},
                      {"tokens_per_second", rate}});
  }
  return WriteOut(fmt::format(
      "perplexity {:.4f}\ntokens     {} in {} chunks of {}, {} of them predicted\n"
      "speed      {:.1f} tokens/s\n",
      report.perplexity, report.tokens, report.chunks, flags.seq_len, report.targets, rate));
}

Status ReportDivergence(const EvaluateFlags& flags, const DivergenceReport& report) {
  if (flags.common.json) {
    return WriteJson({{"kl", report.kl},
                      {"top1_agreement", report.top1_agreement},
                      {"perplexity", report.perplexity},
                      {"reference_perplexity", report.reference_perplexity},
                      {"chunks", report.chunks},
                      {"seq_len", flags.seq_len},
                      {"tokens", report.tokens},
                      {"activations", flags.common.activations},
                      {"seconds", report.seconds}});
  }
  return WriteOut(
      fmt::format("KL         {:.4f} from {}\nsame first {:.1f} % of the tokens\n"
                  "perplexity {:.4f}, of the reference {:.4f}\ntokens     {} in {} chunks of {}\n",
                  report.kl, flags.reference, 100 * report.top1_agreement, report.perplexity,
                  report.reference_perplexity, report.tokens, report.chunks, flags.seq_len));
}

OrderedJson KvRowJson(const KvRow& row) {
  return {{"kv", KvSettingsText(row.kv)},        {"k", KvFormatName(row.kv.k)},
          {"v", KvFormatName(row.kv.v)},         {"bytes_per_token", row.bytes_per_token},
          {"perplexity", row.perplexity},        {"kl", row.kl},
          {"top1_agreement", row.top1_agreement}};
}

Status ReportKv(const EvaluateFlags& flags, const KvTable& table) {
  if (flags.common.json) {
    OrderedJson json = {{"rows", OrderedJson::array()},
                        {"chunks", table.chunks},
                        {"seq_len", flags.seq_len},
                        {"tokens", table.tokens},
                        {"activations", flags.common.activations},
                        {"seconds", table.seconds}};
    for (const KvRow& row : table.rows) json["rows"].push_back(KvRowJson(row));
    return WriteJson(json);
  }
  const double exact_bytes = table.rows[0].bytes_per_token;
  std::vector<std::vector<std::string>> text = {
      {"KV cache", "bytes/token", "of exact", "perplexity", "KL", "same first"}};
  for (const KvRow& row : table.rows) {
    const double share = exact_bytes > 0 ? 100 * row.bytes_per_token / exact_bytes : 100.0;
    text.push_back({KvSettingsText(row.kv), fmt::format("{:.0f}", row.bytes_per_token),
                    fmt::format("{:.0f} %", share), fmt::format("{:.4f}", row.perplexity),
                    fmt::format("{:.5f}", row.kl),
                    fmt::format("{:.1f} %", 100 * row.top1_agreement)});
  }
  return WriteOut(
      FormatTable(text, {false, true, true, true, true, true}) +
      fmt::format("{} tokens in {} chunks of {}\n", table.tokens, table.chunks, flags.seq_len));
}

bool WantsList(const EvaluateFlags& flags) {
  return flags.list.wanted() || (!flags.kv_list.empty() && !flags.reference.empty());
}

// What all caches of --kv have in common.
KvSettings KvBase(const EvaluateFlags& flags, KvFormat exact) {
  KvSettings base;
  base.exact = exact;
  base.min_tokens = flags.kv.min_tokens;
  base.group_size = flags.kv.group_size;
  return base;
}

// One model, one exact cache and those of --kv beside it.
Result<KvTable> RunKvTable(const EvaluateFlags& flags, const ModelSession& session,
                           std::span<const int32_t> ids, PerplexityOptions options) {
  const KvSettings base = KvBase(flags, session.kv().exact);
  TQ_ASSIGN_OR_RETURN(const std::vector<KvSettings> settings, ParseKvList(flags.kv_list, base));
  options.kv = base.exact;
  return EvaluateKv(session.model(), session.backend(), ids, settings, options);
}

Status RunText(const EvaluateFlags& flags, ModelSession& session, Interrupts& interrupts,
               const Console& console) {
  TQ_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(flags.text));
  TQ_RETURN_IF_ERROR(CheckUtf8(text, flags.text));
  TQ_ASSIGN_OR_RETURN(const TextAssets* assets, session.LoadText());
  TQ_ASSIGN_OR_RETURN(const Tokenizer* tokenizer, NeedTokenizer(*assets));
  const std::vector<int32_t> ids =
      tokenizer->Encode(JoinNonBlankLines(text), {.add_special_tokens = true});
  std::unique_ptr<ModelSession> reference;
  if (!flags.reference.empty()) {
    TQ_ASSIGN_OR_RETURN(reference, OpenSession(flags.reference, flags.common, console));
  }
  std::atomic<bool> cancel{false};
  const Interrupts::Scope scope(interrupts, [&cancel] { cancel = true; });
  ProgressBar bar(console, "evaluating", HumanCount, " tokens");
  PerplexityOptions options;
  options.seq_len = flags.seq_len;
  options.num_samples = flags.num_samples;
  options.prefill_chunk = flags.prefill_chunk;
  options.kv = session.kv();
  options.cancel = &cancel;
  options.progress = [&bar](int64_t done, int64_t total) { bar.Update(done, total); };
  if (!flags.kv_list.empty()) {
    const Result<KvTable> table = RunKvTable(flags, session, ids, options);
    bar.Erase();
    if (!table.ok()) return table.status();
    return ReportKv(flags, table.value());
  }
  if (reference != nullptr) {
    const Result<DivergenceReport> report = Divergence(
        session.model(), session.backend(), reference->model(), reference->backend(), ids, options);
    bar.Erase();
    if (!report.ok()) return report.status();
    return ReportDivergence(flags, report.value());
  }
  const Result<PerplexityReport> report =
      Perplexity(session.model(), session.backend(), ids, options);
  bar.Erase();
  if (!report.ok()) return report.status();
  return ReportPerplexity(flags, ids.size(), report.value());
}

Status RunEvaluate(const EvaluateFlags& flags, Interrupts& interrupts) {
  if (WantsList(flags)) {
    EvaluateListInput input{.model = flags.model,
                            .reference = flags.reference,
                            .text = flags.text,
                            .seq_len = flags.seq_len,
                            .num_samples = flags.num_samples};
    if (!flags.kv_list.empty()) {
      const KvSettings base =
          KvBase(flags, KvSettingsFor(BackendOptionsOf(flags.common).activations).exact);
      TQ_ASSIGN_OR_RETURN(input.kv, ParseKvList(flags.kv_list, base));
    }
    return RunEvaluateList(flags.list, input, flags.common, interrupts);
  }
  const Console console = MakeConsole(flags.common.quiet);
  std::optional<KvSettings> kv;
  if (flags.kv_list.empty()) {
    TQ_ASSIGN_OR_RETURN(kv, KvSettingsOf(flags.kv));
  }
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<ModelSession> session,
                      OpenSession(flags.model, flags.common, console, kv));
  return flags.text.empty() ? RunLogits(flags, *session, interrupts, console)
                            : RunText(flags, *session, interrupts, console);
}

}  // namespace

RunCommand RegisterEvaluate(CLI::App& app) {
  const auto flags = std::make_shared<EvaluateFlags>();
  AddModelFlag(app, flags->model);
  CLI::Option* text = app.add_option("--text", flags->text, "Text file: print its perplexity");
  CLI::Option* tokens =
      app.add_option("--tokens", flags->tokens,
                     "Ids: a JSON list, or a safetensors file with an int32 or int64 \"tokens\"");
  CLI::Option* logits =
      app.add_option("--logits", flags->logits,
                     "Write the f32 logits [tokens, vocabulary] to this safetensors file");
  app.add_option("--reference", flags->reference,
                 "With --text: also the divergence from this checkpoint, say the unquantized one")
      ->transform(ModelPath());
  tokens->needs(logits)->excludes(text);
  logits->needs(tokens);
  app.add_flag("--hidden", flags->hidden,
               "With --logits: also \"hidden\" [layers + 1, tokens, hidden size]")
      ->needs(logits);
  app.add_option("--seq-len", flags->seq_len,
                 "With --text: tokens per chunk; the first is context only")
      ->check(InRange(2, 1 << 30))
      ->capture_default_str();
  app.add_option("--num-samples,-n", flags->num_samples, "With --text: chunks at most")
      ->check(InRange(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--prefill-chunk", flags->prefill_chunk,
                 "Tokens per step; 0: chosen (same result)")
      ->check(InRange(0, 1 << 16))
      ->capture_default_str();
  AddKvFlags(app, flags->kv);
  app.add_option("--kv", flags->kv_list,
                 "With --text or --tasks: K4/V4,K8/V3,...: these KV caches beside the exact one")
      ->check([](const std::string& list) { return ParseKvList(list, {}).status().message(); })
      ->excludes("--kv-type")
      ->excludes("--kv-bits")
      ->excludes("--kv-k-bits");
  AddEvaluateListFlags(app, flags->list);
  app.get_option("--model")->required(false);
  AddCommonFlags(app, flags->common, Compute::kModel);
  SetExamples(
      app,
      {"turboquant evaluate --model Qwen3-8B-3bit --text wiki.test.raw --num-samples 64",
       "turboquant evaluate --model Qwen3-8B-3bit --text wiki.test.raw --activations f32 --json",
       "turboquant evaluate --model Qwen3-8B-3bit --reference Qwen3-8B --text wiki.test.raw -n 12",
       "turboquant evaluate --model Qwen3-8B-3bit --text wiki.test.raw -n 12 --kv "
       "K4/V4,K8/V3,K4/V3",
       "turboquant evaluate --model Qwen3-8B-3bit --tokens ids.json --logits out.safetensors",
       "turboquant evaluate --model demo --tasks tools/demo_model/tasks.jsonl",
       "turboquant evaluate --reference Qwen3-8B --bits 2,3,4 --text wiki.test.raw -n 12 --svg "
       "quality.svg"});
  // Exactly one kind of work.
  app.callback([flags] {
    if (!flags->kv_list.empty() && flags->text.empty() && flags->list.tasks.empty()) {
      throw CLI::RequiresError("--kv", "--text or --tasks");
    }
    if (WantsList(*flags)) return;
    if (flags->model.empty()) throw CLI::RequiredError("--model");
    if (!flags->reference.empty() && flags->text.empty()) {
      throw CLI::RequiresError("--reference", "--text");
    }
    if (flags->text.empty() && flags->tokens.empty()) {
      throw CLI::RequiredError("--text, --tasks, or --tokens with --logits,");
    }
  });
  return [flags](Interrupts& interrupts) { return RunEvaluate(*flags, interrupts); };
}

}  // namespace tq
