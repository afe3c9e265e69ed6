// turboquant generate: the answer to one prompt.
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "api/answer.h"
#include "api/request_text.h"
#include "apps/command.h"
#include "apps/disk_cache_flags.h"
#include "apps/flags.h"
#include "apps/generation_flags.h"
#include "apps/kv_flags.h"
#include "apps/output.h"
#include "apps/run_stats.h"
#include "eval/bandwidth.h"

namespace tq {
namespace {

struct GenerateFlags {
  CommonFlags common;
  GenerationFlags generation;
  KvFlags kv;
  DiskCacheFlags disk_cache;
  std::string model;
  std::optional<std::string> prompt;
  std::string prompt_tokens;
  bool print_tokens = false;
  bool no_chat_template = false;
};

// --prompt, or all of stdin when nobody types there.
Result<std::string> ReadPrompt(const GenerateFlags& flags) {
  std::string text;
  if (flags.prompt) {
    text = *flags.prompt;
  } else {
    if (::isatty(STDIN_FILENO) != 0) {
      return InvalidArgument(
          "expected --prompt TEXT, --prompt-tokens IDS or text on stdin, found none");
    }
    TQ_ASSIGN_OR_RETURN(text, ReadStdin());
    if (text.ends_with('\n')) text.pop_back();
  }
  TQ_RETURN_IF_ERROR(CheckUtf8(text, flags.prompt ? "--prompt" : "stdin"));
  return text;
}

Result<std::vector<int32_t>> PromptIds(const GenerateFlags& flags, const std::string& prompt,
                                       const TextAssets& text) {
  if (!flags.prompt_tokens.empty()) return ParseIds(flags.prompt_tokens);
  PromptOptions options;
  options.use_chat_template = !flags.no_chat_template;
  options.system = flags.generation.system;
  if (flags.generation.no_think) options.enable_thinking = false;
  return EncodePrompt(text, prompt, options);
}

std::string IdLine(const std::vector<int32_t>& ids) {
  return fmt::format("{}\n", fmt::join(ids, " "));
}

using Answers = std::vector<std::unique_ptr<Answer>>;

// Reads them one after another; they run at once. A single one is shown as it comes, unless ids or
// JSON are wanted. Returns all texts.
Result<std::vector<std::string>> Stream(const GenerateFlags& flags, const Answers& answers) {
  const bool shown = !flags.common.json && !flags.print_tokens;
  std::vector<std::string> texts;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (shown && answers.size() > 1) {
      TQ_RETURN_IF_ERROR(WriteOut(fmt::format("{}== answer {}\n", i == 0 ? "" : "\n", i + 1)));
    }
    std::string& text = texts.emplace_back();
    while (const std::optional<std::string> piece = answers[i]->Next()) {
      text += *piece;
      if (shown && !piece->empty()) TQ_RETURN_IF_ERROR(WriteOut(*piece));
    }
    if (answers[i]->finish_reason() == FinishReason::kError) return answers[i]->status();
    if (shown && !text.ends_with('\n')) TQ_RETURN_IF_ERROR(WriteOut("\n"));
  }
  return texts;
}

OrderedJson AnswerJson(const GenerateFlags& flags, const TextAssets& assets, const Answer& answer,
                       const std::string& text) {
  OrderedJson json = {{"text", text},
                      {"ids", answer.ids()},
                      {"finish_reason", FinishReasonName(answer.finish_reason())},
                      {"seed", answer.seed()}};
  if (flags.generation.logprobs >= 0) {
    json["logprobs"] = LogprobsJson(assets.tokenizer.get(), answer.ids(), answer.logprobs());
  }
  return json;
}

Status Report(const GenerateFlags& flags, const ModelSession& session, const TextAssets& assets,
              const Answers& answers, const std::vector<std::string>& texts,
              const Console& console) {
  std::vector<RunStats> stats;
  for (const auto& answer : answers) stats.push_back(MakeRunStats(session, answer->stats(), 0));
  // After the peak was taken: the measurement has a large buffer.
  if (!flags.common.quiet && answers.size() == 1) {
    stats[0].bandwidth = MeasureReadBandwidth(session.backend().num_threads());
  }
  if (flags.common.json) {
    OrderedJson list = OrderedJson::array();
    for (size_t i = 0; i < answers.size(); ++i) {
      OrderedJson json = AnswerJson(flags, assets, *answers[i], texts[i]);
      json["stats"] = StatsJson(stats[i]);
      if (answers.size() == 1) return WriteJson(json);
      list.push_back(std::move(json));
    }
    return WriteJson({{"answers", std::move(list)}});
  }
  for (const auto& answer : answers) {
    if (flags.print_tokens) TQ_RETURN_IF_ERROR(WriteOut(IdLine(answer->ids())));
  }
  for (size_t i = 0; i < answers.size() && !flags.common.quiet; ++i) {
    if (answers.size() > 1) {
      PrintNote(console, fmt::format("{:>3}: {}", i + 1, StatsLine(stats[i])));
    } else {
      PrintNote(console, StatsText(stats[i], answers[i]->finish_reason()));
    }
  }
  return Status::Ok();
}

Status RunGenerate(const GenerateFlags& flags, Interrupts& interrupts) {
  const Console console = MakeConsole(flags.common.quiet);
  TQ_RETURN_IF_ERROR(CheckGenerationFlags(flags.generation, flags.common.json));
  std::string prompt;
  if (flags.prompt_tokens.empty()) {
    TQ_ASSIGN_OR_RETURN(prompt, ReadPrompt(flags));
  }
  TQ_ASSIGN_OR_RETURN(const std::optional<KvSettings> kv, KvSettingsOf(flags.kv));
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<ModelSession> session,
                      OpenSession(flags.model, flags.common, console, kv));
  TQ_ASSIGN_OR_RETURN(const TextAssets* text, session->LoadText());
  // Ids in and ids out need no tokenizer.
  if (!flags.print_tokens) TQ_RETURN_IF_ERROR(text->tokenizer_status);
  TQ_ASSIGN_OR_RETURN(std::vector<int32_t> ids, PromptIds(flags, prompt, *text));
  if (flags.common.verbose) PrintNote(console, fmt::format("prompt ids: {}", fmt::join(ids, " ")));
  EngineOptions options = MakeEngineOptions(flags.generation);
  TQ_ASSIGN_OR_RETURN(options.disk_cache, MakeDiskCacheOptions(flags.disk_cache, flags.model));
  // Nothing comes after a single answer.
  options.prefix_cache = flags.generation.num_answers > 1 || !options.disk_cache.folder.empty();
  TQ_ASSIGN_OR_RETURN(Engine * engine, session->StartEngine(options));
  TQ_ASSIGN_OR_RETURN(const GenerateRequest request,
                      MakeRequest(flags.generation, *text, std::move(ids)));
  TQ_ASSIGN_OR_RETURN(const Answers answers,
                      StartAnswers(*engine, text->tokenizer.get(), request, flags.generation.stop,
                                   flags.generation.num_answers));
  std::vector<std::string> texts;
  {
    const Interrupts::Scope scope(interrupts, [&answers] {
      for (const auto& answer : answers) answer->Cancel();
    });
    TQ_ASSIGN_OR_RETURN(texts, Stream(flags, answers));
  }
  NoteDiskCacheError(console, *engine);
  return Report(flags, *session, *text, answers, texts, console);
}

}  // namespace

RunCommand RegisterGenerate(CLI::App& app) {
  const auto flags = std::make_shared<GenerateFlags>();
  AddModelFlag(app, flags->model);
  CLI::Option* prompt = app.add_option("--prompt", flags->prompt, "Text; default: all of stdin");
  app.add_option("--prompt-tokens", flags->prompt_tokens, "Token ids instead of text: 1,2,3")
      ->check(CheckIds)
      ->excludes(prompt);
  app.add_flag("--print-tokens", flags->print_tokens,
               "Print only the ids of the answer, on one line");
  app.add_flag("--no-chat-template", flags->no_chat_template,
               "Use the prompt as it is (with the tokenizer's BOS)");
  AddGenerationFlags(app, flags->generation);
  AddKvFlags(app, flags->kv);
  AddDiskCacheFlags(app, flags->disk_cache);
  AddAnswersFlag(app, flags->generation);
  AddCommonFlags(app, flags->common, Compute::kModel);
  SetExamples(
      app,
      {"turboquant generate --model Qwen3-8B-3bit --prompt \"Why is the sky blue?\"",
       "turboquant generate --model Qwen3-8B-3bit --temp 0.7 --top-p 0.9 --seed 1 < prompt.txt",
       "turboquant generate --model Qwen3-8B-3bit --disk-cache < long_prompt.txt",
       "turboquant generate --model Qwen3-8B-3bit --prompt Hi --temp 1 --n 4 --logprobs 5 --json",
       "turboquant generate --model Qwen3-8B-3bit --prompt-tokens 1,2,3 --print-tokens "
       "--max-tokens 20"});
  return [flags](Interrupts& interrupts) { return RunGenerate(*flags, interrupts); };
}

}  // namespace tq
