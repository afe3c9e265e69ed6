// turboquant tokenize: text -> ids, ids -> text, messages -> ids.
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "api/text_assets.h"
#include "apps/command.h"
#include "apps/flags.h"
#include "apps/output.h"
#include "base/file.h"
#include "base/json.h"

namespace tq {
namespace {

struct TokenizeFlags {
  CommonFlags common;
  std::string model;
  std::optional<std::string> text;
  std::string decode;
  std::string chat;
  bool no_special = false;
  bool no_think = false;
};

Result<std::string> ReadText(const TokenizeFlags& flags) {
  std::string text;
  if (flags.text) {
    text = *flags.text;
  } else {
    if (::isatty(STDIN_FILENO) != 0) {
      return InvalidArgument(
          "expected TEXT, --decode IDS, --chat FILE or text on stdin, found none");
    }
    TQ_ASSIGN_OR_RETURN(text, ReadStdin());
  }
  TQ_RETURN_IF_ERROR(CheckUtf8(text, flags.text ? "TEXT" : "stdin"));
  return text;
}

Result<std::string> RenderChat(const TokenizeFlags& flags, const TextAssets& assets) {
  constexpr size_t kMaxBytes = size_t{256} << 20;
  TQ_ASSIGN_OR_RETURN(const std::string json, ReadTextFile(flags.chat, kMaxBytes));
  TQ_ASSIGN_OR_RETURN(const ChatInput input, ParseChatInput(json, flags.chat));
  TQ_ASSIGN_OR_RETURN(const ChatPrompt* chat, NeedChat(assets));
  ChatPromptOptions options;
  if (flags.no_think) options.enable_thinking = false;
  return chat->Render(input, options);
}

Status PrintDecoded(const TokenizeFlags& flags, const Tokenizer& tokenizer) {
  TQ_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, ParseIds(flags.decode));
  const std::string text = tokenizer.Decode(ids, flags.no_special);
  if (flags.common.json) return WriteJson({{"ids", ids}, {"text", text}});
  return WriteOut(text + "\n");
}

Status RunTokenize(const TokenizeFlags& flags) {
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<WeightSource> source, OpenSource(flags.model));
  TQ_ASSIGN_OR_RETURN(const TextAssets assets, LoadTextAssets(*source));
  TQ_ASSIGN_OR_RETURN(const Tokenizer* tokenizer, NeedTokenizer(assets));
  if (!flags.decode.empty()) return PrintDecoded(flags, *tokenizer);

  const bool is_chat = !flags.chat.empty();
  std::string text;
  if (is_chat) {
    TQ_ASSIGN_OR_RETURN(text, RenderChat(flags, assets));
  } else {
    TQ_ASSIGN_OR_RETURN(text, ReadText(flags));
  }
  // A template writes its special tokens itself.
  const std::vector<int32_t> ids =
      tokenizer->Encode(text, {.add_special_tokens = !is_chat && !flags.no_special});
  if (!flags.common.json) return WriteOut(fmt::format("{}\n", fmt::join(ids, " ")));
  OrderedJson json = {{"ids", ids}};
  std::vector<std::string> tokens;
  for (const int32_t id : ids) tokens.emplace_back(tokenizer->TokenText(id));
  json["tokens"] = std::move(tokens);
  if (is_chat) json["text"] = text;
  return WriteJson(json);
}

}  // namespace

RunCommand RegisterTokenize(CLI::App& app) {
  const auto flags = std::make_shared<TokenizeFlags>();
  AddModelFlag(app, flags->model);
  CLI::Option* text = app.add_option("TEXT", flags->text, "Text; default: all of stdin");
  CLI::Option* decode = app.add_option("--decode", flags->decode, "Ids to turn into text: 1,2,3")
                            ->check(CheckIds)
                            ->excludes(text);
  app.add_option(
         "--chat", flags->chat,
         "Messages for the chat template: a JSON list, or {\"messages\": ..., \"tools\": ...}")
      ->excludes(text)
      ->excludes(decode);
  app.add_flag("--no-special", flags->no_special,
               "Add no BOS or EOS; with --decode: leave special tokens out");
  app.add_flag("--no-think", flags->no_think, "Tell the chat template: enable_thinking = false");
  AddCommonFlags(app, flags->common, Compute::kNone);
  SetExamples(app, {"turboquant tokenize --model Qwen3-8B \"Hello, world\"",
                    "turboquant tokenize --model Qwen3-8B --decode 9707,11,1879",
                    "turboquant tokenize --model Qwen3-8B --chat messages.json --json"});
  return [flags](Interrupts&) { return RunTokenize(*flags); };
}

}  // namespace tq
