// Tokens -> TemplateTree. Errors: kCorrupt (syntax) or kUnsupported, naming line and construct.
#pragma once

#include <algorithm>

#include "chat/template/ast.h"
#include "chat/template/lexer.h"

namespace tq::jinja {

Result<TemplateTree> ParseTemplate(std::string_view source);

// The token cursor and the expression half. Statements are in parser.cc.
class ExprParser {
 public:
  explicit ExprParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

 protected:
  using Parsed = Result<ExprPtr>;

  const Token& Current() const { return tokens_[at_]; }
  const Token& Ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  void Next() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool AtOperator(std::string_view op) const { return IsOperator(Current(), op); }
  bool AtName(std::string_view name) const { return IsName(Current(), name); }
  static bool IsOperator(const Token& token, std::string_view op) {
    return token.type == TokenType::kOperator && token.text == op;
  }
  static bool IsName(const Token& token, std::string_view name) {
    return token.type == TokenType::kName && token.text == name;
  }
  bool SkipOperator(std::string_view op);
  bool SkipName(std::string_view name);
  Status ExpectOperator(std::string_view op);
  Status ExpectName(std::string_view name);
  Status Fail(int line, std::string_view what) const;
  Status Unexpected(std::string_view expected) const;

  Parsed ParseExpression(bool with_cond = true);
  // A tuple without parentheses, or one expression. `end_name` also ends it.
  Parsed ParseTuple(bool with_cond = true, std::string_view end_name = {},
                    bool parenthesized = false);
  // Names, tuples of names and, with_attributes, name.attribute.
  Parsed ParseTarget(bool with_attributes, std::string_view end_name = {});
  // `| name(args) | name ...` applied to node, which is null in a filter block.
  Parsed ParseFilters(ExprPtr node, bool start_inline = false);

  int depth_ = 0;

 private:
  Parsed ParseCond();
  Parsed ParseOr();
  Parsed ParseAnd();
  Parsed ParseNot();
  Parsed ParseCompare();
  Parsed ParseSum();
  Parsed ParseConcat();
  Parsed ParseProduct();
  Parsed ParsePower();
  Parsed ParseUnary(bool with_filter);
  Parsed ParsePrimary(bool with_attributes);
  Parsed ParseName(bool with_attributes);
  Parsed ParseList();
  Parsed ParseDict();
  Parsed ParsePostfix(ExprPtr node, bool with_filter);
  Parsed ParseSubscript(ExprPtr node);
  Parsed ParseSubscripted();
  Parsed ParseTest(ExprPtr node);
  Result<std::unique_ptr<CallArgs>> ParseCallArgs();
  Result<std::string> ParseDottedName();
  Parsed Make(ExprKind kind, int line, std::vector<ExprPtr> items);
  Parsed MakeCall(ExprPtr node, ExprKind kind, int line, std::unique_ptr<CallArgs> args);
  Status CheckDepth(int depth, int line) const;
  Status AsTarget(const Expr& expr) const;

  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace tq::jinja
