// turboquant chat: a conversation, typed or from a script (one message a line).
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/answer.h"
#include "api/request_text.h"
#include "apps/command.h"
#include "apps/disk_cache_flags.h"
#include "apps/flags.h"
#include "apps/generation_flags.h"
#include "apps/kv_flags.h"
#include "apps/line_editor.h"
#include "apps/output.h"
#include "apps/run_stats.h"
#include "base/json.h"

namespace tq {
namespace {

struct ChatFlags {
  CommonFlags common;
  GenerationFlags generation;
  KvFlags kv;
  DiskCacheFlags disk_cache;
  std::string model;
};

constexpr const char* kHelp =
    "/help         this list\n"
    "/reset        forget the conversation\n"
    "/system TEXT  set the system message and start anew; without TEXT: none\n"
    "/exit         end (as does Ctrl-D); Ctrl-C stops an answer";

class Conversation {
 public:
  Conversation(const ChatFlags& flags, const Console& console, ModelSession& session,
               const TextAssets& text, Engine& engine, Interrupts& interrupts)
      : flags_(flags),
        console_(console),
        session_(session),
        text_(text),
        engine_(engine),
        interrupts_(interrupts),
        system_(flags.generation.system) {
    Reset();
  }

  // False: the conversation ends.
  bool Command(const std::string& line) {
    if (line == "/exit" || line == "/quit") return false;
    if (line == "/reset") {
      Reset();
    } else if (line == "/system" || line.starts_with("/system ")) {
      system_ = line.size() > 8 ? line.substr(8) : "";
      Reset();
    } else {
      PrintNote(console_, line == "/help" ? kHelp : fmt::format("no command {}: try /help", line));
    }
    return true;
  }

  // One message and its answer. After an error the conversation is as before.
  Status Say(const std::string& line) {
    TQ_RETURN_IF_ERROR(CheckUtf8(line, "message"));
    input_.messages.push_back(MakeMessage("user", line));
    Result<std::string> reply = Reply();
    if (!reply.ok()) {
      input_.messages.pop_back();
      return reply.status();
    }
    input_.messages.push_back(MakeMessage("assistant", reply.value()));
    return Status::Ok();
  }

 private:
  void Reset() {
    input_.messages.clear();
    if (!system_.empty()) input_.messages.push_back(MakeMessage("system", system_));
  }

  Result<std::string> Reply() {
    ChatPromptOptions options;
    if (flags_.generation.no_think) options.enable_thinking = false;
    TQ_ASSIGN_OR_RETURN(std::vector<int32_t> ids, EncodeChat(text_, input_, options));
    TQ_ASSIGN_OR_RETURN(GenerateRequest request,
                        MakeRequest(flags_.generation, text_, std::move(ids)));
    TQ_ASSIGN_OR_RETURN(
        const std::unique_ptr<Answer> answer,
        Answer::Start(engine_, text_.tokenizer.get(), std::move(request), flags_.generation.stop));
    const Interrupts::Scope scope(interrupts_, [&answer] { answer->Cancel(); });
    std::string reply;
    while (const std::optional<std::string> piece = answer->Next()) {
      reply += *piece;
      if (!flags_.common.json) TQ_RETURN_IF_ERROR(WriteOut(*piece));
    }
    if (answer->finish_reason() == FinishReason::kError) return answer->status();
    TQ_RETURN_IF_ERROR(Report(*answer, reply));
    return reply;
  }

  Status Report(const Answer& answer, const std::string& reply) {
    const RunStats stats = MakeRunStats(session_, answer.stats(), 0);
    if (flags_.common.json) {
      OrderedJson json = {{"role", "assistant"},
                          {"content", reply},
                          {"ids", answer.ids()},
                          {"finish_reason", FinishReasonName(answer.finish_reason())}};
      if (flags_.generation.logprobs >= 0) {
        json["logprobs"] = LogprobsJson(text_.tokenizer.get(), answer.ids(), answer.logprobs());
      }
      json["stats"] = StatsJson(stats);
      return WriteJson(json);
    }
    TQ_RETURN_IF_ERROR(WriteOut("\n"));
    const bool wanted = flags_.common.verbose || (console_.out_is_terminal && !console_.quiet);
    if (wanted) PrintNote(console_, StatsLine(stats));
    return Status::Ok();
  }

  const ChatFlags& flags_;
  const Console& console_;
  ModelSession& session_;
  const TextAssets& text_;
  Engine& engine_;
  Interrupts& interrupts_;
  std::string system_;
  ChatInput input_;
};

Status RunChat(const ChatFlags& flags, Interrupts& interrupts) {
  const Console console = MakeConsole(flags.common.quiet);
  TQ_RETURN_IF_ERROR(CheckGenerationFlags(flags.generation, flags.common.json));
  TQ_ASSIGN_OR_RETURN(const std::optional<KvSettings> kv, KvSettingsOf(flags.kv));
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<ModelSession> session,
                      OpenSession(flags.model, flags.common, console, kv));
  TQ_ASSIGN_OR_RETURN(const TextAssets* text, session->LoadText());
  TQ_RETURN_IF_ERROR(text->tokenizer_status);
  TQ_RETURN_IF_ERROR(NeedChat(*text).status());
  EngineOptions options = MakeEngineOptions(flags.generation);
  TQ_ASSIGN_OR_RETURN(options.disk_cache, MakeDiskCacheOptions(flags.disk_cache, flags.model));
  TQ_ASSIGN_OR_RETURN(Engine * engine, session->StartEngine(options));

  Conversation conversation(flags, console, *session, *text, *engine, interrupts);
  LineEditor editor;
  if (editor.interactive() && !console.quiet) PrintNote(console, "/help lists the commands");
  while (const std::optional<std::string> line = editor.ReadLine()) {
    if (line->find_first_not_of(" \t") == std::string::npos) continue;
    if (line->starts_with('/')) {
      if (!conversation.Command(*line)) break;
      continue;
    }
    const Status status = conversation.Say(*line);
    // A script wants to know; a person can go on.
    if (!status.ok() && !editor.interactive()) return status;
    if (!status.ok()) PrintError(status.message());
  }
  NoteDiskCacheError(console, *engine);
  return Status::Ok();
}

}  // namespace

RunCommand RegisterChat(CLI::App& app) {
  const auto flags = std::make_shared<ChatFlags>();
  flags->generation.max_tokens = 2048;
  AddModelFlag(app, flags->model);
  AddGenerationFlags(app, flags->generation);
  AddKvFlags(app, flags->kv);
  AddDiskCacheFlags(app, flags->disk_cache);
  AddCommonFlags(app, flags->common, Compute::kModel);
  SetExamples(
      app,
      {"turboquant chat --model Qwen3-8B-3bit",
       "turboquant chat --model Qwen3-8B-3bit --disk-cache",
       "turboquant chat --model Qwen3-8B-3bit --system \"Answer in one sentence.\" --temp 0.7",
       "printf 'Hello!\\nAnd now in French.\\n' | turboquant chat --model Qwen3-8B-3bit --json"});
  return [flags](Interrupts& interrupts) { return RunChat(*flags, interrupts); };
}

}  // namespace tq
