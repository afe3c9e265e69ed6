#include "server/answer_constraint.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "chat/output/tool_grammar.h"
#include "grammar/after_reasoning.h"

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
  return OrderedJson{{"type", "json_schema"}, {"json_schema", std::move(schema)}};
}

// Where answers are messages in channels: behind the header of the last one.
Result<GrammarSpec> InFinalChannel(const GrammarSpec& format) {
  TQ_ASSIGN_OR_RETURN(OrderedJson part, FormatPart(format));
  const auto text = [](const char* value) {
    return OrderedJson{{"type", "const_string"}, {"value", value}};
  };
  OrderedJson elements = {{{"type", "optional"}, {"content", text("<|start|>assistant")}},
                          text("<|channel|>final<|message|>")};
  elements.push_back(std::move(part));
  const OrderedJson tag = {{"type", "structural_tag"},
                           {"format", {{"type", "sequence"}, {"elements", std::move(elements)}}}};
  return GrammarSpec{GrammarSpec::Kind::kStructuralTag, tag.dump(), format.mode};
}

}  // namespace

Result<std::unique_ptr<Constraint>> ConstrainFormat(const Call& call, const GrammarSpec& format,
                                                    const AnswerPlan& plan) {
  const bool has_channels = plan.parser &&
                            plan.parser->syntax.reasoning == ReasoningSyntax::kHarmony &&
                            call.model->text().tokenizer->TokenId("<|channel|>") >= 0;
  if (has_channels) {
    TQ_ASSIGN_OR_RETURN(const GrammarSpec spec, InFinalChannel(format));
    TQ_ASSIGN_OR_RETURN(GrammarCompiler * compiler, call.model->call_grammars(plan.parser->syntax));
    return Compile(call, *compiler, spec, plan);
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
  const Tokenizer& tokenizer = *call.model->text().tokenizer;
  ToolGrammarOptions options;
  options.syntax = plan.parser->syntax.tools;
  options.several = !plan.one_call;
  options.has_token = [&](std::string_view text) { return tokenizer.TokenId(text) >= 0; };
  Result<std::string> grammar = MakeToolGrammar(tools, options);
  if (!grammar.ok()) return grammar.status().WithContext("tool_choice");
  TQ_ASSIGN_OR_RETURN(GrammarCompiler * compiler, call.model->call_grammars(plan.parser->syntax));
  return Compile(
      call, *compiler,
      {GrammarSpec::Kind::kStructuralTag, std::move(grammar).value(), SchemaMode::kRelax}, plan);
}

void SetConstraint(const Call& call, std::unique_ptr<Constraint> constraint, int64_t budget,
                   AnswerPlan& plan) {
  const tq::ReasoningMarks marks = MarksOf(plan.parser->syntax.reasoning);
  const bool limited = budget >= 0;
  if (!marks.close.empty() && (constraint != nullptr || limited)) {
    const Tokenizer& tokenizer = *call.model->text().tokenizer;
    ThoughtMarks thoughts;
    if (!plan.parser->starts_in_reasoning) thoughts.begin_ids = MarkIds(tokenizer, marks.open);
    thoughts.end = marks.close;
    if (constraint != nullptr) thoughts.end_ids = EndIds(plan);
    thoughts.budget = budget;
    if (limited) thoughts.close_ids = MarkIds(tokenizer, marks.close);
    if (plan.parser->starts_in_reasoning || !thoughts.begin_ids.empty()) {
      constraint = MakeAfterReasoning(std::move(constraint), std::move(thoughts), tokenizer);
    }
  }
  plan.request.constraint = std::move(constraint);
}

}  // namespace tq::server
