// Expressions, in the order of Jinja's precedence.
#include <algorithm>

#include <fmt/format.h>

#include "chat/template/parser.h"

namespace tq::jinja {

Status ExprParser::Fail(int line, std::string_view what) const {
  return Corrupt(fmt::format("chat template line {}: {}", line, what));
}

Status ExprParser::Unexpected(std::string_view expected) const {
  const Token& token = Current();
  std::string found;
  switch (token.type) {
    case TokenType::kData:
      found = "text";
      break;
    case TokenType::kVariableBegin:
      found = "{{";
      break;
    case TokenType::kVariableEnd:
      found = "}}";
      break;
    case TokenType::kBlockBegin:
      found = "{%";
      break;
    case TokenType::kBlockEnd:
      found = "%}";
      break;
    case TokenType::kEnd:
      found = "the end of the template";
      break;
    case TokenType::kString:
      found = "a string";
      break;
    default:
      found = "'" + token.text + "'";
      break;
  }
  return Fail(token.line, fmt::format("expected {}, found {}", expected, found));
}

bool ExprParser::SkipOperator(std::string_view op) {
  if (!AtOperator(op)) return false;
  Next();
  return true;
}

bool ExprParser::SkipName(std::string_view name) {
  if (!AtName(name)) return false;
  Next();
  return true;
}

Status ExprParser::ExpectOperator(std::string_view op) {
  return SkipOperator(op) ? Status::Ok() : Unexpected(fmt::format("'{}'", op));
}

Status ExprParser::ExpectName(std::string_view name) {
  return SkipName(name) ? Status::Ok() : Unexpected(fmt::format("'{}'", name));
}

Status ExprParser::CheckDepth(int depth, int line) const {
  if (depth <= kMaxSourceDepth) return Status::Ok();
  return Fail(line, fmt::format("nested deeper than {} levels", kMaxSourceDepth));
}

Result<ExprPtr> ExprParser::Make(ExprKind kind, int line, std::vector<ExprPtr> items) {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->line = line;
  for (const ExprPtr& item : items) {
    if (item != nullptr) expr->depth = std::max(expr->depth, item->depth + 1);
  }
  TQ_RETURN_IF_ERROR(CheckDepth(expr->depth, line));
  expr->items = std::move(items);
  return expr;
}

namespace {
template <typename... T>
std::vector<ExprPtr> Items(T... item) {
  std::vector<ExprPtr> items;
  (items.push_back(std::move(item)), ...);
  return items;
}
}  // namespace

Result<ExprPtr> ExprParser::ParseExpression(bool with_cond) {
  ++depth_;
  TQ_RETURN_IF_ERROR(CheckDepth(depth_, Current().line));
  Parsed expr = with_cond ? ParseCond() : ParseOr();
  --depth_;
  return expr;
}

Result<ExprPtr> ExprParser::ParseCond() {
  const int line = Current().line;
  TQ_ASSIGN_OR_RETURN(ExprPtr expr, ParseOr());
  while (SkipName("if")) {
    TQ_ASSIGN_OR_RETURN(ExprPtr test, ParseOr());
    ExprPtr otherwise;
    if (SkipName("else")) {
      TQ_ASSIGN_OR_RETURN(otherwise, ParseExpression());
    }
    TQ_ASSIGN_OR_RETURN(expr, Make(ExprKind::kCond, line,
                                   Items(std::move(test), std::move(expr), std::move(otherwise))));
  }
  return expr;
}

Result<ExprPtr> ExprParser::ParseOr() {
  TQ_ASSIGN_OR_RETURN(ExprPtr left, ParseAnd());
  while (AtName("or")) {
    const int line = Current().line;
    Next();
    TQ_ASSIGN_OR_RETURN(ExprPtr right, ParseAnd());
    TQ_ASSIGN_OR_RETURN(left, Make(ExprKind::kOr, line, Items(std::move(left), std::move(right))));
  }
  return left;
}

Result<ExprPtr> ExprParser::ParseAnd() {
  TQ_ASSIGN_OR_RETURN(ExprPtr left, ParseNot());
  while (AtName("and")) {
    const int line = Current().line;
    Next();
    TQ_ASSIGN_OR_RETURN(ExprPtr right, ParseNot());
    TQ_ASSIGN_OR_RETURN(left, Make(ExprKind::kAnd, line, Items(std::move(left), std::move(right))));
  }
  return left;
}

Result<ExprPtr> ExprParser::ParseNot() {
  if (!AtName("not")) return ParseCompare();
  const int line = Current().line;
  Next();
  TQ_RETURN_IF_ERROR(CheckDepth(++depth_, line));
  TQ_ASSIGN_OR_RETURN(ExprPtr operand, ParseNot());
  --depth_;
  return Make(ExprKind::kNot, line, Items(std::move(operand)));
}

Result<ExprPtr> ExprParser::ParseCompare() {
  static constexpr std::pair<std::string_view, CompareOp> kOps[] = {
      {"==", CompareOp::kEq}, {"!=", CompareOp::kNe}, {"<", CompareOp::kLt},
      {"<=", CompareOp::kLe}, {">", CompareOp::kGt},  {">=", CompareOp::kGe}};
  const int line = Current().line;
  TQ_ASSIGN_OR_RETURN(ExprPtr first, ParseSum());
  std::vector<ExprPtr> items = Items(std::move(first));
  std::vector<CompareOp> ops;
  while (true) {
    const auto* op = std::find_if(std::begin(kOps), std::end(kOps),
                                  [this](const auto& entry) { return AtOperator(entry.first); });
    if (op != std::end(kOps)) {
      Next();
      ops.push_back(op->second);
    } else if (SkipName("in")) {
      ops.push_back(CompareOp::kIn);
    } else if (AtName("not") && IsName(Ahead(), "in")) {
      Next();
      Next();
      ops.push_back(CompareOp::kNotIn);
    } else {
      break;
    }
    TQ_ASSIGN_OR_RETURN(ExprPtr right, ParseSum());
    items.push_back(std::move(right));
  }
  if (ops.empty()) return std::move(items[0]);
  TQ_ASSIGN_OR_RETURN(ExprPtr expr, Make(ExprKind::kCompare, line, std::move(items)));
  expr->ops = std::move(ops);
  return expr;
}

Result<ExprPtr> ExprParser::ParseSum() {
  TQ_ASSIGN_OR_RETURN(ExprPtr left, ParseConcat());
  while (AtOperator("+") || AtOperator("-")) {
    const int line = Current().line;
    const ExprKind kind = AtOperator("+") ? ExprKind::kAdd : ExprKind::kSubtract;
    Next();
    TQ_ASSIGN_OR_RETURN(ExprPtr right, ParseConcat());
    TQ_ASSIGN_OR_RETURN(left, Make(kind, line, Items(std::move(left), std::move(right))));
  }
  return left;
}

Result<ExprPtr> ExprParser::ParseConcat() {
  const int line = Current().line;
  TQ_ASSIGN_OR_RETURN(ExprPtr first, ParseProduct());
  std::vector<ExprPtr> items = Items(std::move(first));
  while (SkipOperator("~")) {
    TQ_ASSIGN_OR_RETURN(ExprPtr next, ParseProduct());
    items.push_back(std::move(next));
  }
  if (items.size() == 1) return std::move(items[0]);
  return Make(ExprKind::kConcat, line, std::move(items));
}

Result<ExprPtr> ExprParser::ParseProduct() {
  static constexpr std::pair<std::string_view, ExprKind> kOps[] = {{"*", ExprKind::kMultiply},
                                                                   {"/", ExprKind::kDivide},
                                                                   {"//", ExprKind::kFloorDivide},
                                                                   {"%", ExprKind::kModulo}};
  TQ_ASSIGN_OR_RETURN(ExprPtr left, ParsePower());
  while (true) {
    const auto* op = std::find_if(std::begin(kOps), std::end(kOps),
                                  [this](const auto& entry) { return AtOperator(entry.first); });
    if (op == std::end(kOps)) return left;
    const int line = Current().line;
    Next();
    TQ_ASSIGN_OR_RETURN(ExprPtr right, ParsePower());
    TQ_ASSIGN_OR_RETURN(left, Make(op->second, line, Items(std::move(left), std::move(right))));
  }
}

// Left-associative, unlike Python's: Jinja writes the parentheses itself.
Result<ExprPtr> ExprParser::ParsePower() {
  TQ_ASSIGN_OR_RETURN(ExprPtr left, ParseUnary(/*with_filter=*/true));
  while (AtOperator("**")) {
    const int line = Current().line;
    Next();
    TQ_ASSIGN_OR_RETURN(ExprPtr right, ParseUnary(/*with_filter=*/true));
    TQ_ASSIGN_OR_RETURN(left,
                        Make(ExprKind::kPower, line, Items(std::move(left), std::move(right))));
  }
  return left;
}

Result<ExprPtr> ExprParser::ParseUnary(bool with_filter) {
  const int line = Current().line;
  ExprPtr node;
  if (AtOperator("-") || AtOperator("+")) {
    const ExprKind kind = AtOperator("-") ? ExprKind::kNegate : ExprKind::kPlus;
    Next();
    TQ_RETURN_IF_ERROR(CheckDepth(++depth_, line));
    TQ_ASSIGN_OR_RETURN(ExprPtr operand, ParseUnary(/*with_filter=*/false));
    --depth_;
    TQ_ASSIGN_OR_RETURN(node, Make(kind, line, Items(std::move(operand))));
  } else {
    TQ_ASSIGN_OR_RETURN(node, ParsePrimary(/*with_attributes=*/false));
  }
  return ParsePostfix(std::move(node), with_filter);
}

}  // namespace tq::jinja
