#include "server/answer_constraint.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "chat/output/tool_grammar.h"
#include "grammar/after_reasoning.h"
#include "server/greedy_calls.h"

namespace tq::server {
namespace {

std::vector<int32_t> EndIds(const AnswerPlan& plan) {
  std::vector<int32_t> ends = plan.request.end_ids;
  ends.insert(ends.end(), plan.request.stop_ids.begin(), plan.request.stop_ids.end());
  return ends;
}

Result<std::unique_ptr<Constraint>> Compile(const Call& call, GrammarCompiler& compiler,
                                            const GrammarSpec& spec, const AnswerPlan& plan) {
  std::vector<std::string> relaxed;
  TQ_ASSIGN_OR_RETURN(std::unique_ptr<Constraint> constraint,
                      compiler.Compile(spec, EndIds(plan), &relaxed));
  for (const std::string& note : relaxed) {
    call.service.log().Write(LogLevel::kInfo, "not enforced",
                             {{"id", call.request_id}, {"what", note}});
  }
  return constraint;
}

std::vector<int32_t> MarkIds(const Tokenizer& tokenizer, std::string_view mark) {
  const int32_t id = tokenizer.TokenId(mark);
  if (id >= 0) return {id};
  return tokenizer.Encode(mark, {});
}

// A format as a part of a structural tag.
Result<OrderedJson> FormatPart(const GrammarSpec& format) {
  switch (format.kind) {
    case GrammarSpec::Kind::kRegex:
      return OrderedJson{{"type", "regex"}, {"pattern", format.text}};
    case GrammarSpec::Kind::kEbnf:
      return OrderedJson{{"type", "grammar"}, {"grammar", format.text}};
    default:
      break;
  }
  OrderedJson schema = {{"type", "object"}, {"additionalProperties", true}};
  if (format.kind == GrammarSpec::Kind::kJsonSchema) {
    auto parsed = ParseOrderedJson(format.text, "schema");
    if (!parsed.ok()) return InvalidArgument(parsed.status().message());
    schema = std::move(parsed).value();
  }
  return OrderedJson{
      {"type", "json_schema"}, {"json_schema", std::move(schema)}, {"max_whitespace_cnt", 32}};
}

bool HasChannels(const Call& call, const AnswerPlan& plan) {
  return plan.parser && plan.parser->syntax.reasoning == ReasoningSyntax::kHarmony &&
         call.model->text().tokenizer->TokenId("<|channel|>") >= 0;
}

// Where answers are messages in channels: behind the header of the last one.
OrderedJson InFinalChannel(OrderedJson part) {
  const auto text = [](const char* value) {
    return OrderedJson{{"type", "const_string"}, {"value", value}};
  };
  OrderedJson elements = {{{"type", "optional"}, {"content", text("<|start|>assistant")}},
                          text("<|channel|>final<|message|>")};
  elements.push_back(std::move(part));
  return {{"type", "sequence"}, {"elements", std::move(elements)}};
}

ToolGrammarOptions GrammarOptionsOf(const Call& call, const AnswerPlan& plan) {
  const Tokenizer& tokenizer = *call.model->text().tokenizer;
  ToolGrammarOptions options;
  options.syntax = plan.parser->syntax.tools;
  options.several = !plan.one_call;
  options.has_token = [&tokenizer](std::string_view text) { return tokenizer.TokenId(text) >= 0; };
  return options;
}

bool WantsGreedyCalls(const Service& service, const AnswerPlan& plan) {
  return service.options().greedy_calls && plan.parser->parse_tools &&
         plan.request.sampling.temperature > 0;
}

ToolSyntaxTracker TrackerOf(const ServiceOptions& options, const AnswerPlan& plan) {
  if (options.greedy_tags.empty()) return ToolSyntaxTracker(plan.parser->syntax.tools);
  return {options.greedy_tags.front(), options.greedy_tags.back()};
}

}  // namespace

Result<std::unique_ptr<Constraint>> ConstrainFormat(const Call& call, const GrammarSpec& format,
                                                    const AnswerPlan& plan) {
  if (HasChannels(call, plan)) {
    TQ_ASSIGN_OR_RETURN(OrderedJson part, FormatPart(format));
    const OrderedJson tag = {{"type", "structural_tag"},
                             {"format", InFinalChannel(std::move(part))}};
    TQ_ASSIGN_OR_RETURN(GrammarCompiler * compiler, call.model->call_grammars(plan.parser->syntax));
    return Compile(call, *compiler, {GrammarSpec::Kind::kStructuralTag, tag.dump(), format.mode},
                   plan);
  }
  TQ_ASSIGN_OR_RETURN(GrammarCompiler * compiler, call.model->grammars());
  return Compile(call, *compiler, format, plan);
}

Result<std::unique_ptr<Constraint>> ConstrainCalls(const Call& call,
                                                   const std::vector<std::string>& names,
                                                   const AnswerPlan& plan) {
  std::vector<ToolSpec> tools = plan.tools;
  std::erase_if(tools, [&](const ToolSpec& tool) {
    return !names.empty() && std::find(names.begin(), names.end(), tool.name) == names.end();
  });
  Result<std::string> grammar = MakeToolGrammar(tools, GrammarOptionsOf(call, plan));
  if (!grammar.ok()) return grammar.status().WithContext("tool_choice");
  TQ_ASSIGN_OR_RETURN(GrammarCompiler * compiler, call.model->call_grammars(plan.parser->syntax));
  return Compile(
      call, *compiler,
      {GrammarSpec::Kind::kStructuralTag, std::move(grammar).value(), SchemaMode::kRelax}, plan);
}

Result<std::unique_ptr<Constraint>> ConstrainCallsOrFormat(const Call& call,
                                                           const GrammarSpec& format,
                                                           const std::string& field,
                                                           const AnswerPlan& plan) {
  // Schemas of tools are relaxed where they must; so what the format says is checked by itself.
  TQ_ASSIGN_OR_RETURN(GrammarCompiler * formats, call.model->grammars());
  TQ_RETURN_IF_ERROR(formats->Compile(format, EndIds(plan), nullptr).status());
  TQ_ASSIGN_OR_RETURN(OrderedJson part, FormatPart(format));
  const bool has_channels = HasChannels(call, plan);
  if (has_channels) part = InFinalChannel(std::move(part));
  ToolGrammarOptions options = GrammarOptionsOf(call, plan);
  options.otherwise = part.dump();
  // In front of JSON it means nothing; any other form begins with its first byte.
  options.leading_space = !has_channels && (format.kind == GrammarSpec::Kind::kJsonObject ||
                                            format.kind == GrammarSpec::Kind::kJsonSchema);
  Result<std::string> grammar = MakeToolGrammar(plan.tools, options);
  if (!grammar.ok()) {
    return InvalidArgument(
        fmt::format("{}: expected no tools beside it, since {}: leave one of them out, or send "
                    "\"tool_choice\": \"none\"",
                    field, grammar.status().message()));
  }
  TQ_ASSIGN_OR_RETURN(GrammarCompiler * compiler, call.model->call_grammars(plan.parser->syntax));
  return Compile(
      call, *compiler,
      {GrammarSpec::Kind::kStructuralTag, std::move(grammar).value(), SchemaMode::kRelax}, plan);
}

void SetConstraint(const Call& call, std::unique_ptr<Constraint> constraint, int64_t budget,
                   AnswerPlan& plan) {
  const tq::ReasoningMarks marks = MarksOf(plan.parser->syntax.reasoning);
  const bool limited = budget >= 0;
  const bool has_form = constraint != nullptr;
  if (WantsGreedyCalls(call.service, plan)) {
    constraint = MakeGreedyCalls(std::move(constraint), TrackerOf(call.service.options(), plan),
                                 *call.model->text().tokenizer);
  }
  if (!marks.close.empty() && (constraint != nullptr || limited)) {
    const Tokenizer& tokenizer = *call.model->text().tokenizer;
    ThoughtMarks thoughts;
    if (!plan.parser->starts_in_reasoning) thoughts.begin_ids = MarkIds(tokenizer, marks.open);
    thoughts.end = marks.close;
    if (has_form) thoughts.end_ids = EndIds(plan);
    thoughts.budget = budget;
    if (limited) thoughts.close_ids = MarkIds(tokenizer, marks.close);
    if (plan.parser->starts_in_reasoning || !thoughts.begin_ids.empty()) {
      constraint = MakeAfterReasoning(std::move(constraint), std::move(thoughts), tokenizer);
    }
  }
  plan.request.constraint = std::move(constraint);
}

}  // namespace tq::server
