// turboquant tokenize: text -> ids, ids -> text, messages -> prompt -> ids; two tokenizers
// compared.
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "api/text_assets.h"
#include "apps/command.h"
#include "apps/flags.h"
#include "apps/output.h"
#include "apps/token_view.h"
#include "base/file.h"
#include "base/json.h"
#include "chat/parse_messages.h"

namespace tq {
namespace {

struct TokenizeFlags {
  CommonFlags common;
  std::string model;
  std::optional<std::string> text;
  std::string decode;
  std::string chat;
  std::string api;
  std::string diff;
  bool show = false;
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

// What is to be tokenized: a text, or messages that each model renders its own way.
struct Subject {
  std::string text;
  std::optional<ChatInput> chat;
};

Result<Subject> ReadSubject(const TokenizeFlags& flags, const Console& console) {
  constexpr size_t kMaxBytes = size_t{256} << 20;
  Subject subject;
  if (flags.chat.empty()) {
    TQ_ASSIGN_OR_RETURN(subject.text, ReadText(flags));
    return subject;
  }
  TQ_ASSIGN_OR_RETURN(const std::string json, ReadTextFile(flags.chat, kMaxBytes));
  TQ_ASSIGN_OR_RETURN(subject.chat, ParseChatInput(json, flags.chat, ParseApiName(flags.api)));
  if (!flags.common.quiet) {
    for (const std::string& note : subject.chat->notes) PrintNote(console, "note: " + note);
  }
  return subject;
}

Result<RenderedPrompt> Render(const ChatInput& input, const TokenizeFlags& flags,
                              const TextAssets& assets) {
  TQ_ASSIGN_OR_RETURN(const ChatPrompt* chat, NeedChat(assets));
  ChatPromptOptions options;
  if (flags.no_think) options.enable_thinking = false;
  return chat->RenderPrompt(input, options);
}

// What the model at `path` makes of it.
Result<TokenizedText> Tokenize(const std::string& path, const Subject& subject,
                               const TokenizeFlags& flags) {
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<WeightSource> source, OpenSource(path));
  TQ_ASSIGN_OR_RETURN(const TextAssets assets, LoadTextAssets(*source));
  TQ_ASSIGN_OR_RETURN(const Tokenizer* tokenizer, NeedTokenizer(assets));
  if (!subject.chat) return TokenizeText(*tokenizer, subject.text, {}, !flags.no_special);
  // A template writes its special tokens itself.
  TQ_ASSIGN_OR_RETURN(RenderedPrompt prompt, Render(*subject.chat, flags, assets));
  return TokenizeText(*tokenizer, std::move(prompt.text), std::move(prompt.plain), false);
}

Status PrintDecoded(const TokenizeFlags& flags) {
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<WeightSource> source, OpenSource(flags.model));
  TQ_ASSIGN_OR_RETURN(const TextAssets assets, LoadTextAssets(*source));
  TQ_ASSIGN_OR_RETURN(const Tokenizer* tokenizer, NeedTokenizer(assets));
  TQ_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, ParseIds(flags.decode));
  const std::string text = tokenizer->Decode(ids, flags.no_special);
  if (flags.common.json) return WriteJson({{"ids", ids}, {"text", text}});
  return WriteOut(text + "\n");
}

Status PrintDiff(const TokenizeFlags& flags, const Subject& subject, const TokenizedText& first) {
  Result<TokenizedText> second = Tokenize(flags.diff, subject, flags);
  if (!second.ok()) return second.status().WithContext(flags.diff);
  const TokenDiff diff = CompareTokens(first, *second);
  TQ_RETURN_IF_ERROR(flags.common.json
                         ? WriteJson(DiffJson(diff, first, *second))
                         : WriteOut(DiffText(diff, first, *second, flags.model, flags.diff)));
  if (diff.equal()) return Status::Ok();
  return InvalidArgument(fmt::format("{} and {} read this differently", flags.model, flags.diff));
}

Status PrintShown(const TokenizedText& tokenized, const Console& console) {
  std::string shown = ShowPieces(CutAtSpecial(tokenized), console.out_colour);
  if (!shown.ends_with('\n')) shown += '\n';
  TQ_RETURN_IF_ERROR(WriteOut(shown));
  if (console.quiet) return Status::Ok();
  size_t num_special = 0;
  for (const bool special : tokenized.special) num_special += special ? 1 : 0;
  PrintNote(console, fmt::format("{} tokens, {} of them special; {} bytes", tokenized.ids.size(),
                                 num_special, tokenized.text.size()));
  return Status::Ok();
}

OrderedJson TokensJson(const TokenizeFlags& flags, const TokenizedText& tokenized) {
  OrderedJson json = {{"ids", tokenized.ids}};
  json["tokens"] = tokenized.names;
  if (!flags.chat.empty()) json["text"] = tokenized.text;
  if (!flags.show) return json;
  OrderedJson pieces = OrderedJson::array();
  for (const TextPiece& piece : CutAtSpecial(tokenized)) {
    pieces.push_back({{"text", piece.text}, {"special", piece.special}});
  }
  json["pieces"] = std::move(pieces);
  return json;
}

Status RunTokenize(const TokenizeFlags& flags) {
  if (!flags.decode.empty()) return PrintDecoded(flags);
  const Console console = MakeConsole(flags.common.quiet);
  TQ_ASSIGN_OR_RETURN(const Subject subject, ReadSubject(flags, console));
  TQ_ASSIGN_OR_RETURN(const TokenizedText tokenized, Tokenize(flags.model, subject, flags));
  if (!flags.diff.empty()) return PrintDiff(flags, subject, tokenized);
  if (flags.common.json) return WriteJson(TokensJson(flags, tokenized));
  if (flags.show) return PrintShown(tokenized, console);
  return WriteOut(fmt::format("{}\n", fmt::join(tokenized.ids, " ")));
}

}  // namespace

RunCommand RegisterTokenize(CLI::App& app) {
  const auto flags = std::make_shared<TokenizeFlags>();
  AddModelFlag(app, flags->model);
  CLI::Option* text = app.add_option("TEXT", flags->text, "Text; default: all of stdin");
  CLI::Option* decode = app.add_option("--decode", flags->decode, "Ids to turn into text: 1,2,3")
                            ->check(CheckIds)
                            ->excludes(text);
  CLI::Option* chat =
      app.add_option("--chat", flags->chat,
                     "Messages for the chat template: the JSON body of a request, or the list of "
                     "messages alone")
          ->excludes(text)
          ->excludes(decode);
  app.add_option("--api", flags->api,
                 "Shape of the --chat file: openai, anthropic or responses; default: by its keys")
      ->check(CLI::IsMember({"openai", "anthropic", "responses"}))
      ->needs(chat);
  CLI::Option* show =
      app.add_flag("--show", flags->show,
                   "Print the text itself with its special tokens marked, by colour on a terminal, "
                   "else by \u27e6brackets\u27e7")
          ->excludes(decode);
  app.add_option("--diff", flags->diff,
                 "Another model: show where its prompt and tokens differ; exit code 1 if they do")
      ->excludes(decode)
      ->excludes(show);
  app.add_flag("--no-special", flags->no_special,
               "Add no BOS or EOS; with --decode: leave special tokens out");
  app.add_flag("--no-think", flags->no_think, "Tell the chat template: enable_thinking = false");
  AddCommonFlags(app, flags->common, Compute::kNone);
  SetExamples(app,
              {"turboquant tokenize --model Qwen3-8B \"Hello, world\"",
               "turboquant tokenize --model Qwen3-8B --decode 9707,11,1879",
               "turboquant tokenize --model Qwen3-8B --chat messages.json --show",
               "turboquant tokenize --model Qwen3-8B --chat request.json --api anthropic --json",
               "turboquant tokenize --model Qwen3-8B --diff Qwen3-8B.gguf < README.md"});
  return [flags](Interrupts&) { return RunTokenize(*flags); };
}

}  // namespace tq
