// Literals, names, subscripts, calls, filters, tests and assignment targets.
#include <fmt/format.h>

#include "chat/template/parser.h"
#include "chat/template/text.h"

namespace tq::jinja {
namespace {

Value Literal(std::string text) {
  auto object = std::make_shared<StringObject>();
  object->length = CodePointCount(text);
  object->text = std::move(text);
  return Value(Kind::kString, std::move(object));
}

}  // namespace

Result<ExprPtr> ExprParser::ParsePrimary(bool with_attributes) {
  const Token& token = Current();
  const int line = token.line;
  switch (token.type) {
    case TokenType::kName:
      return ParseName(with_attributes);
    case TokenType::kString: {
      // Neighbouring strings are one string.
      std::string text;
      while (Current().type == TokenType::kString) {
        text += Current().text;
        Next();
      }
      TQ_ASSIGN_OR_RETURN(ExprPtr expr, Make(ExprKind::kConst, line, {}));
      expr->value = Literal(std::move(text));
      return expr;
    }
    case TokenType::kInteger:
    case TokenType::kFloat: {
      TQ_ASSIGN_OR_RETURN(ExprPtr expr, Make(ExprKind::kConst, line, {}));
      expr->value =
          token.type == TokenType::kInteger ? Value::Int(token.integer) : Value::Float(token.real);
      Next();
      return expr;
    }
    default:
      break;
  }
  if (SkipOperator("(")) {
    TQ_ASSIGN_OR_RETURN(ExprPtr expr, ParseTuple(/*with_cond=*/true, {}, /*parenthesized=*/true));
    TQ_RETURN_IF_ERROR(ExpectOperator(")"));
    return expr;
  }
  if (AtOperator("[")) return ParseList();
  if (AtOperator("{")) return ParseDict();
  return Unexpected("an expression");
}

Result<ExprPtr> ExprParser::ParseName(bool with_attributes) {
  const Token& token = Current();
  Next();
  TQ_ASSIGN_OR_RETURN(ExprPtr expr, Make(ExprKind::kConst, token.line, {}));
  if (token.text == "true" || token.text == "True") {
    expr->value = Value::Bool(true);
  } else if (token.text == "false" || token.text == "False") {
    expr->value = Value::Bool(false);
  } else if (token.text == "none" || token.text == "None") {
    expr->value = Value::None();
  } else {
    expr->kind = ExprKind::kName;
    expr->name = token.text;
    if (with_attributes && SkipOperator(".")) {
      if (Current().type != TokenType::kName) return Unexpected("an attribute name");
      expr->kind = ExprKind::kAttribute;
      expr->attribute = Current().text;
      Next();
    }
  }
  return expr;
}

Result<ExprPtr> ExprParser::ParseList() {
  const int line = Current().line;
  TQ_RETURN_IF_ERROR(ExpectOperator("["));
  std::vector<ExprPtr> items;
  while (!AtOperator("]")) {
    if (!items.empty()) TQ_RETURN_IF_ERROR(ExpectOperator(","));
    if (AtOperator("]")) break;
    TQ_ASSIGN_OR_RETURN(ExprPtr item, ParseExpression());
    items.push_back(std::move(item));
  }
  TQ_RETURN_IF_ERROR(ExpectOperator("]"));
  return Make(ExprKind::kList, line, std::move(items));
}

Result<ExprPtr> ExprParser::ParseDict() {
  const int line = Current().line;
  TQ_RETURN_IF_ERROR(ExpectOperator("{"));
  std::vector<ExprPtr> items;
  while (!AtOperator("}")) {
    if (!items.empty()) TQ_RETURN_IF_ERROR(ExpectOperator(","));
    if (AtOperator("}")) break;
    TQ_ASSIGN_OR_RETURN(ExprPtr key, ParseExpression());
    TQ_RETURN_IF_ERROR(ExpectOperator(":"));
    TQ_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
    items.push_back(std::move(key));
    items.push_back(std::move(value));
  }
  TQ_RETURN_IF_ERROR(ExpectOperator("}"));
  return Make(ExprKind::kDict, line, std::move(items));
}

Result<ExprPtr> ExprParser::ParseTuple(bool with_cond, std::string_view end_name,
                                       bool parenthesized) {
  const int line = Current().line;
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) TQ_RETURN_IF_ERROR(ExpectOperator(","));
    const TokenType type = Current().type;
    if (type == TokenType::kVariableEnd || type == TokenType::kBlockEnd || AtOperator(")") ||
        (!end_name.empty() && AtName(end_name))) {
      break;
    }
    TQ_ASSIGN_OR_RETURN(ExprPtr item, ParseExpression(with_cond));
    items.push_back(std::move(item));
    if (!AtOperator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!items.empty()) return std::move(items[0]);
    if (!parenthesized) return Unexpected("an expression");
  }
  return Make(ExprKind::kTuple, line, std::move(items));
}

Status ExprParser::AsTarget(const Expr& expr) const {
  if (expr.kind == ExprKind::kName || expr.kind == ExprKind::kAttribute) return Status::Ok();
  if (expr.kind == ExprKind::kTuple) {
    for (const ExprPtr& item : expr.items) TQ_RETURN_IF_ERROR(AsTarget(*item));
    return Status::Ok();
  }
  return Fail(expr.line, "only names, tuples of names and namespace attributes can be assigned to");
}

Result<ExprPtr> ExprParser::ParseTarget(bool with_attributes, std::string_view end_name) {
  const int line = Current().line;
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) TQ_RETURN_IF_ERROR(ExpectOperator(","));
    if (Current().type == TokenType::kBlockEnd || AtOperator(")") ||
        (!end_name.empty() && AtName(end_name))) {
      break;
    }
    TQ_ASSIGN_OR_RETURN(ExprPtr item, ParsePrimary(with_attributes));
    TQ_RETURN_IF_ERROR(AsTarget(*item));
    items.push_back(std::move(item));
    if (!AtOperator(",")) break;
    is_tuple = true;
  }
  if (items.empty()) return Unexpected("a name to assign to");
  if (!is_tuple) return std::move(items[0]);
  return Make(ExprKind::kTuple, line, std::move(items));
}

Result<ExprPtr> ExprParser::ParsePostfix(ExprPtr node, bool with_filter) {
  while (true) {
    if (AtOperator(".") || AtOperator("[")) {
      TQ_ASSIGN_OR_RETURN(node, ParseSubscript(std::move(node)));
    } else if (AtOperator("(")) {
      const int line = Current().line;
      TQ_ASSIGN_OR_RETURN(std::unique_ptr<CallArgs> args, ParseCallArgs());
      TQ_ASSIGN_OR_RETURN(node, MakeCall(std::move(node), ExprKind::kCall, line, std::move(args)));
    } else {
      break;
    }
  }
  // Behind a filter or test, subscripts are no longer possible, but calls are.
  while (with_filter) {
    if (AtOperator("|")) {
      TQ_ASSIGN_OR_RETURN(node, ParseFilters(std::move(node)));
    } else if (AtName("is")) {
      TQ_ASSIGN_OR_RETURN(node, ParseTest(std::move(node)));
    } else if (AtOperator("(")) {
      const int line = Current().line;
      TQ_ASSIGN_OR_RETURN(std::unique_ptr<CallArgs> args, ParseCallArgs());
      TQ_ASSIGN_OR_RETURN(node, MakeCall(std::move(node), ExprKind::kCall, line, std::move(args)));
    } else {
      break;
    }
  }
  return node;
}

Result<ExprPtr> ExprParser::MakeCall(ExprPtr node, ExprKind kind, int line,
                                     std::unique_ptr<CallArgs> args) {
  std::vector<ExprPtr> items;
  items.push_back(std::move(node));
  TQ_ASSIGN_OR_RETURN(ExprPtr expr, Make(kind, line, std::move(items)));
  const auto include = [&expr](const ExprPtr& arg) {
    if (arg != nullptr) expr->depth = std::max(expr->depth, arg->depth + 1);
  };
  for (const ExprPtr& arg : args->positional) include(arg);
  for (const auto& [name, arg] : args->named) include(arg);
  include(args->more_positional);
  include(args->more_named);
  TQ_RETURN_IF_ERROR(CheckDepth(expr->depth, line));
  expr->args = std::move(args);
  return expr;
}

Result<ExprPtr> ExprParser::ParseSubscript(ExprPtr node) {
  const int line = Current().line;
  std::vector<ExprPtr> items;
  items.push_back(std::move(node));
  if (SkipOperator(".")) {
    const Token& token = Current();
    if (token.type == TokenType::kName) {
      Next();
      TQ_ASSIGN_OR_RETURN(ExprPtr expr, Make(ExprKind::kGetAttr, line, std::move(items)));
      expr->value = Literal(token.text);
      return expr;
    }
    if (token.type != TokenType::kInteger) return Unexpected("a name or number behind '.'");
    TQ_ASSIGN_OR_RETURN(ExprPtr index, Make(ExprKind::kConst, token.line, {}));
    index->value = Value::Int(token.integer);
    Next();
    items.push_back(std::move(index));
    return Make(ExprKind::kGetItem, line, std::move(items));
  }
  TQ_RETURN_IF_ERROR(ExpectOperator("["));
  std::vector<ExprPtr> keys;
  while (!AtOperator("]")) {
    if (!keys.empty()) TQ_RETURN_IF_ERROR(ExpectOperator(","));
    TQ_ASSIGN_OR_RETURN(ExprPtr key, ParseSubscripted());
    keys.push_back(std::move(key));
  }
  TQ_RETURN_IF_ERROR(ExpectOperator("]"));
  // A slice has no value yet (three items); a finished slice expression has four.
  const auto is_bare_slice = [](const ExprPtr& key) {
    return key->kind == ExprKind::kSlice && key->items.size() == 3;
  };
  if (keys.size() == 1 && is_bare_slice(keys[0])) {
    for (ExprPtr& bound : keys[0]->items) items.push_back(std::move(bound));
    return Make(ExprKind::kSlice, line, std::move(items));
  }
  if (std::any_of(keys.begin(), keys.end(), is_bare_slice)) {
    return Fail(line, "a slice cannot stand beside other subscripts");
  }
  if (keys.size() == 1) {
    items.push_back(std::move(keys[0]));
  } else {
    TQ_ASSIGN_OR_RETURN(ExprPtr tuple, Make(ExprKind::kTuple, line, std::move(keys)));
    items.push_back(std::move(tuple));
  }
  return Make(ExprKind::kGetItem, line, std::move(items));
}

// An index, or a slice whose three items still lack the sliced value.
Result<ExprPtr> ExprParser::ParseSubscripted() {
  const int line = Current().line;
  std::vector<ExprPtr> bounds;
  if (SkipOperator(":")) {
    bounds.push_back(nullptr);
  } else {
    TQ_ASSIGN_OR_RETURN(ExprPtr index, ParseExpression());
    if (!SkipOperator(":")) return index;
    bounds.push_back(std::move(index));
  }
  const auto at_end = [this] { return AtOperator(":") || AtOperator("]") || AtOperator(","); };
  for (int i = 0; i < 2; ++i) {
    if (i == 1 && !SkipOperator(":")) {
      bounds.push_back(nullptr);
      break;
    }
    ExprPtr bound;
    if (!at_end()) {
      TQ_ASSIGN_OR_RETURN(bound, ParseExpression());
    }
    bounds.push_back(std::move(bound));
  }
  return Make(ExprKind::kSlice, line, std::move(bounds));
}

Result<std::unique_ptr<CallArgs>> ExprParser::ParseCallArgs() {
  const int line = Current().line;
  TQ_RETURN_IF_ERROR(ExpectOperator("("));
  auto args = std::make_unique<CallArgs>();
  bool first = true;
  while (!AtOperator(")")) {
    if (!first) {
      TQ_RETURN_IF_ERROR(ExpectOperator(","));
      if (AtOperator(")")) break;
    }
    first = false;
    bool in_order = args->more_named == nullptr;
    if (SkipOperator("*")) {
      in_order = in_order && args->more_positional == nullptr;
      TQ_ASSIGN_OR_RETURN(args->more_positional, ParseExpression());
    } else if (SkipOperator("**")) {
      TQ_ASSIGN_OR_RETURN(args->more_named, ParseExpression());
    } else if (Current().type == TokenType::kName && IsOperator(Ahead(), "=")) {
      std::string name = Current().text;
      for (const auto& [other, unused] : args->named) {
        if (other == name) return Fail(line, fmt::format("argument {} is given twice", name));
      }
      Next();
      Next();
      TQ_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
      args->named.emplace_back(std::move(name), std::move(value));
    } else {
      in_order = in_order && args->more_positional == nullptr && args->named.empty();
      TQ_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
      args->positional.push_back(std::move(value));
    }
    if (!in_order) return Fail(line, "the arguments of the call are in the wrong order");
  }
  TQ_RETURN_IF_ERROR(ExpectOperator(")"));
  return args;
}

Result<std::string> ExprParser::ParseDottedName() {
  std::string name;
  do {
    if (Current().type != TokenType::kName) return Unexpected("a name");
    if (!name.empty()) name += '.';
    name += Current().text;
    Next();
  } while (SkipOperator("."));
  return name;
}

Result<ExprPtr> ExprParser::ParseFilters(ExprPtr node, bool start_inline) {
  while (start_inline || AtOperator("|")) {
    if (!start_inline) Next();
    start_inline = false;
    const int line = Current().line;
    TQ_ASSIGN_OR_RETURN(std::string name, ParseDottedName());
    auto args = std::make_unique<CallArgs>();
    if (AtOperator("(")) {
      TQ_ASSIGN_OR_RETURN(args, ParseCallArgs());
    }
    TQ_ASSIGN_OR_RETURN(node, MakeCall(std::move(node), ExprKind::kFilter, line, std::move(args)));
    node->name = std::move(name);
  }
  return node;
}

Result<ExprPtr> ExprParser::ParseTest(ExprPtr node) {
  const int line = Current().line;
  Next();
  const bool negated = SkipName("not");
  TQ_ASSIGN_OR_RETURN(std::string name, ParseDottedName());
  auto args = std::make_unique<CallArgs>();
  const TokenType type = Current().type;
  if (AtOperator("(")) {
    TQ_ASSIGN_OR_RETURN(args, ParseCallArgs());
  } else if ((type == TokenType::kName || type == TokenType::kString ||
              type == TokenType::kInteger || type == TokenType::kFloat || AtOperator("[") ||
              AtOperator("{")) &&
             !AtName("else") && !AtName("or") && !AtName("and")) {
    if (AtName("is")) return Fail(line, "tests cannot be chained with 'is'");
    TQ_ASSIGN_OR_RETURN(ExprPtr arg, ParsePrimary(/*with_attributes=*/false));
    TQ_ASSIGN_OR_RETURN(arg, ParsePostfix(std::move(arg), /*with_filter=*/false));
    args->positional.push_back(std::move(arg));
  }
  TQ_ASSIGN_OR_RETURN(ExprPtr expr,
                      MakeCall(std::move(node), ExprKind::kTest, line, std::move(args)));
  expr->name = std::move(name);
  if (!negated) return expr;
  std::vector<ExprPtr> items;
  items.push_back(std::move(expr));
  return Make(ExprKind::kNot, line, std::move(items));
}

}  // namespace tq::jinja
