// turboquant generate: the answer to one prompt.
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "api/answer.h"
#include "apps/command.h"
#include "apps/flags.h"
#include "apps/generation_flags.h"
#include "apps/output.h"
#include "apps/run_stats.h"
#include "eval/bandwidth.h"

namespace tq {
namespace {

struct GenerateFlags {
  CommonFlags common;
  GenerationFlags generation;
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

// Shows the text as it comes, unless ids or JSON are wanted. Returns all of it.
Result<std::string> Stream(const GenerateFlags& flags, Answer& answer) {
  const bool shown = !flags.common.json && !flags.print_tokens;
  std::string text;
  while (const std::optional<std::string> piece = answer.Next()) {
    text += *piece;
    if (shown && !piece->empty()) TQ_RETURN_IF_ERROR(WriteOut(*piece));
  }
  if (answer.finish_reason() == FinishReason::kError) return answer.status();
  if (shown && !text.ends_with('\n')) TQ_RETURN_IF_ERROR(WriteOut("\n"));
  return text;
}

Status Report(const GenerateFlags& flags, const ModelSession& session, const Answer& answer,
              const std::string& text, uint64_t seed, const Console& console) {
  RunStats stats = MakeRunStats(session, answer.stats(), 0);
  // After the peak was taken: the measurement has a large buffer.
  if (!flags.common.quiet) stats.bandwidth = MeasureReadBandwidth(session.backend().num_threads());
  if (flags.common.json) {
    return WriteJson({{"text", text},
                      {"ids", answer.ids()},
                      {"finish_reason", FinishReasonName(answer.finish_reason())},
                      {"seed", seed},
                      {"stats", StatsJson(stats)}});
  }
  if (flags.print_tokens) TQ_RETURN_IF_ERROR(WriteOut(IdLine(answer.ids())));
  if (!flags.common.quiet) PrintNote(console, StatsText(stats, answer.finish_reason()));
  return Status::Ok();
}

Status RunGenerate(const GenerateFlags& flags, Interrupts& interrupts) {
  const Console console = MakeConsole(flags.common.quiet);
  std::string prompt;
  if (flags.prompt_tokens.empty()) {
    TQ_ASSIGN_OR_RETURN(prompt, ReadPrompt(flags));
  }
  for (const std::string& stop : flags.generation.stop)
    TQ_RETURN_IF_ERROR(CheckUtf8(stop, "--stop"));
  TQ_RETURN_IF_ERROR(CheckUtf8(flags.generation.system, "--system"));

  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<ModelSession> session,
                      OpenSession(flags.model, flags.common, console));
  TQ_ASSIGN_OR_RETURN(const TextAssets* text, session->LoadText());
  // Ids in and ids out need no tokenizer.
  if (!flags.print_tokens) TQ_RETURN_IF_ERROR(text->tokenizer_status);
  TQ_ASSIGN_OR_RETURN(std::vector<int32_t> ids, PromptIds(flags, prompt, *text));
  if (flags.common.verbose) PrintNote(console, fmt::format("prompt ids: {}", fmt::join(ids, " ")));
  EngineOptions options = MakeEngineOptions(flags.generation);
  options.prefix_cache = false;  // nothing comes after it
  TQ_ASSIGN_OR_RETURN(Engine * engine, session->StartEngine(options));
  GenerateRequest request = MakeRequest(flags.generation, *text, std::move(ids));
  const uint64_t seed = request.sampling.seed;
  TQ_ASSIGN_OR_RETURN(
      const std::unique_ptr<Answer> answer,
      Answer::Start(*engine, text->tokenizer.get(), std::move(request), flags.generation.stop));
  std::string answer_text;
  {
    const Interrupts::Scope scope(interrupts, [&answer] { answer->Cancel(); });
    TQ_ASSIGN_OR_RETURN(answer_text, Stream(flags, *answer));
  }
  return Report(flags, *session, *answer, answer_text, seed, console);
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
  AddCommonFlags(app, flags->common, Compute::kModel);
  SetExamples(
      app,
      {"turboquant generate --model Qwen3-8B-3bit --prompt \"Why is the sky blue?\"",
       "turboquant generate --model Qwen3-8B-3bit --temp 0.7 --top-p 0.9 --seed 1 < prompt.txt",
       "turboquant generate --model Qwen3-8B-3bit --prompt-tokens 1,2,3 --print-tokens "
       "--max-tokens 20"});
  return [flags](Interrupts& interrupts) { return RunGenerate(*flags, interrupts); };
}

}  // namespace tq
