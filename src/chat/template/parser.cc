// Statements.
#include "chat/template/parser.h"

#include <fmt/format.h>

#include "chat/template/scope.h"

namespace tq::jinja {
namespace {

class Parser : public ExprParser {
 public:
  using ExprParser::ExprParser;

  Result<Body> ParseAll() {
    TQ_ASSIGN_OR_RETURN(Body body, ParseBody({}));
    return body;
  }

 private:
  using Statement = Result<StmtPtr>;
  using EndNames = std::vector<std::string_view>;

  static StmtPtr Make(StmtKind kind, int line) {
    auto stmt = std::make_unique<Stmt>();
    stmt->kind = kind;
    stmt->line = line;
    return stmt;
  }

  // Statements up to a tag named in end_names, which is left unread. Empty: to the end.
  Result<Body> ParseBody(const EndNames& end_names) {
    Body body;
    if (++depth_ > kMaxSourceDepth) {
      return Fail(Current().line, fmt::format("nested deeper than {} levels", kMaxSourceDepth));
    }
    while (Current().type != TokenType::kEnd) {
      const Token& token = Current();
      StmtPtr stmt;
      if (token.type == TokenType::kData) {
        stmt = Make(StmtKind::kText, token.line);
        stmt->text = token.text;
        Next();
      } else if (token.type == TokenType::kVariableBegin) {
        Next();
        stmt = Make(StmtKind::kPrint, token.line);
        TQ_ASSIGN_OR_RETURN(stmt->expr, ParseTuple());
        if (Current().type != TokenType::kVariableEnd) return Unexpected("'}}'");
        Next();
      } else {
        Next();
        for (const std::string_view name : end_names) {
          if (!AtName(name)) continue;
          --depth_;
          return body;
        }
        TQ_ASSIGN_OR_RETURN(stmt, ParseStatement(end_names));
        TQ_RETURN_IF_ERROR(ExpectBlockEnd());
      }
      body.push_back(std::move(stmt));
    }
    --depth_;
    if (!end_names.empty()) return Unexpected(fmt::format("'{}'", end_names.back()));
    return body;
  }

  // `%} body {% end`, with the end tag's name left unread.
  Result<Body> ParseBlock(const EndNames& end_names) {
    SkipOperator(":");
    TQ_RETURN_IF_ERROR(ExpectBlockEnd());
    return ParseBody(end_names);
  }

  Result<Body> ParseBlockTo(std::string_view end_name) {
    TQ_ASSIGN_OR_RETURN(Body body, ParseBlock({end_name}));
    Next();
    return body;
  }

  Status ExpectBlockEnd() {
    if (Current().type != TokenType::kBlockEnd) return Unexpected("'%}'");
    Next();
    return Status::Ok();
  }

  Statement ParseStatement(const EndNames& end_names) {
    const Token& token = Current();
    if (token.type != TokenType::kName) return Unexpected("the name of a tag");
    struct Tag {
      std::string_view name;
      Statement (Parser::*parse)(int line);
    };
    static constexpr Tag kTags[] = {
        {"for", &Parser::ParseFor},           {"if", &Parser::ParseIf},
        {"set", &Parser::ParseSet},           {"macro", &Parser::ParseMacro},
        {"call", &Parser::ParseCallBlock},    {"filter", &Parser::ParseFilterBlock},
        {"with", &Parser::ParseWith},         {"do", &Parser::ParseDo},
        {"print", &Parser::ParsePrint},       {"generation", &Parser::ParseGeneration},
        {"break", &Parser::ParseLoopControl}, {"continue", &Parser::ParseLoopControl}};
    for (const Tag& tag : kTags) {
      if (tag.name != token.text) continue;
      if (tag.parse != &Parser::ParseLoopControl) Next();
      return (this->*tag.parse)(token.line);
    }
    for (const std::string_view other :
         {"include", "import", "from", "extends", "block", "autoescape"}) {
      if (token.text == other) {
        return Unsupported(
            fmt::format("chat template line {}: the tag '{}' is not supported in chat templates",
                        token.line, other));
      }
    }
    return Fail(token.line, end_names.empty()
                                ? fmt::format("unknown tag '{}'", token.text)
                                : fmt::format("unknown tag '{}' (expected '{}' or a statement)",
                                              token.text, end_names.back()));
  }

  Statement ParseFor(int line) {
    StmtPtr stmt = Make(StmtKind::kFor, line);
    TQ_ASSIGN_OR_RETURN(stmt->target, ParseTarget(/*with_attributes=*/false, "in"));
    TQ_RETURN_IF_ERROR(ExpectName("in"));
    TQ_ASSIGN_OR_RETURN(stmt->expr, ParseTuple(/*with_cond=*/false, "recursive"));
    if (SkipName("if")) {
      TQ_ASSIGN_OR_RETURN(stmt->test, ParseExpression());
    }
    stmt->recursive = SkipName("recursive");
    ++loop_depth_;
    TQ_ASSIGN_OR_RETURN(stmt->body, ParseBlock({"else", "endfor"}));
    --loop_depth_;
    if (SkipName("else")) {
      // A recursive loop's else belongs to the function that the loop becomes.
      const int outer = std::exchange(loop_depth_, stmt->recursive ? 0 : loop_depth_);
      TQ_ASSIGN_OR_RETURN(stmt->else_body, ParseBlock({"endfor"}));
      loop_depth_ = outer;
    }
    Next();
    return stmt;
  }

  Statement ParseIf(int line) {
    StmtPtr stmt = Make(StmtKind::kIf, line);
    while (true) {
      Branch branch;
      TQ_ASSIGN_OR_RETURN(branch.test, ParseTuple(/*with_cond=*/false));
      TQ_ASSIGN_OR_RETURN(branch.body, ParseBlock({"elif", "else", "endif"}));
      stmt->branches.push_back(std::move(branch));
      if (SkipName("elif")) continue;
      if (SkipName("else")) {
        TQ_ASSIGN_OR_RETURN(stmt->else_body, ParseBlock({"endif"}));
      }
      Next();
      return stmt;
    }
  }

  Statement ParseSet(int line) {
    StmtPtr stmt = Make(StmtKind::kSet, line);
    TQ_ASSIGN_OR_RETURN(stmt->target, ParseTarget(/*with_attributes=*/true));
    if (SkipOperator("=")) {
      TQ_ASSIGN_OR_RETURN(stmt->expr, ParseTuple());
      return stmt;
    }
    stmt->kind = StmtKind::kSetBlock;
    TQ_ASSIGN_OR_RETURN(stmt->expr, ParseFilters(nullptr));
    TQ_ASSIGN_OR_RETURN(stmt->body, ParseBlockTo("endset"));
    return stmt;
  }

  // (name, name=default, ...)
  Status ParseSignature(Stmt* stmt) {
    TQ_RETURN_IF_ERROR(ExpectOperator("("));
    while (!AtOperator(")")) {
      if (!stmt->params.empty()) TQ_RETURN_IF_ERROR(ExpectOperator(","));
      if (Current().type != TokenType::kName) return Unexpected("the name of a parameter");
      auto param = std::make_unique<Expr>();
      param->kind = ExprKind::kName;
      param->line = Current().line;
      param->name = Current().text;
      for (const ExprPtr& other : stmt->params) {
        if (other->name == param->name) {
          return Fail(param->line, fmt::format("parameter {} is declared twice", param->name));
        }
      }
      Next();
      if (SkipOperator("=")) {
        TQ_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
        stmt->function->defaults.push_back(std::move(value));
      } else if (!stmt->function->defaults.empty()) {
        return Fail(param->line, fmt::format("parameter {} without a default follows one that has "
                                             "a default",
                                             param->name));
      }
      stmt->params.push_back(std::move(param));
    }
    return ExpectOperator(")");
  }

  Result<Body> ParseFunctionBody(std::string_view end_name) {
    const int outer = std::exchange(loop_depth_, 0);
    TQ_ASSIGN_OR_RETURN(Body body, ParseBlockTo(end_name));
    loop_depth_ = outer;
    return body;
  }

  Statement ParseMacro(int line) {
    StmtPtr stmt = Make(StmtKind::kMacro, line);
    stmt->function = std::make_unique<Function>();
    if (Current().type != TokenType::kName) return Unexpected("the name of the macro");
    stmt->text = Current().text;
    stmt->function->name = stmt->text;
    Next();
    TQ_RETURN_IF_ERROR(ParseSignature(stmt.get()));
    TQ_ASSIGN_OR_RETURN(stmt->body, ParseFunctionBody("endmacro"));
    return stmt;
  }

  Statement ParseCallBlock(int line) {
    StmtPtr stmt = Make(StmtKind::kCallBlock, line);
    stmt->function = std::make_unique<Function>();
    stmt->function->name = "caller";
    if (AtOperator("(")) TQ_RETURN_IF_ERROR(ParseSignature(stmt.get()));
    TQ_ASSIGN_OR_RETURN(stmt->expr, ParseExpression());
    if (stmt->expr->kind != ExprKind::kCall) return Fail(line, "the tag 'call' needs a call");
    TQ_ASSIGN_OR_RETURN(stmt->body, ParseFunctionBody("endcall"));
    return stmt;
  }

  // Marks what the assistant said, for training; renders as its body, in a scope of its own.
  Statement ParseGeneration(int line) {
    StmtPtr stmt = Make(StmtKind::kGeneration, line);
    TQ_ASSIGN_OR_RETURN(stmt->body, ParseFunctionBody("endgeneration"));
    return stmt;
  }

  Statement ParseFilterBlock(int line) {
    StmtPtr stmt = Make(StmtKind::kFilterBlock, line);
    TQ_ASSIGN_OR_RETURN(stmt->expr, ParseFilters(nullptr, /*start_inline=*/true));
    TQ_ASSIGN_OR_RETURN(stmt->body, ParseBlockTo("endfilter"));
    return stmt;
  }

  Statement ParseWith(int line) {
    StmtPtr stmt = Make(StmtKind::kWith, line);
    while (Current().type != TokenType::kBlockEnd) {
      if (!stmt->targets.empty()) TQ_RETURN_IF_ERROR(ExpectOperator(","));
      TQ_ASSIGN_OR_RETURN(ExprPtr target, ParseTarget(/*with_attributes=*/false));
      TQ_RETURN_IF_ERROR(ExpectOperator("="));
      TQ_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
      stmt->targets.push_back(std::move(target));
      stmt->values.push_back(std::move(value));
    }
    TQ_ASSIGN_OR_RETURN(stmt->body, ParseBlockTo("endwith"));
    return stmt;
  }

  Statement ParseDo(int line) {
    StmtPtr stmt = Make(StmtKind::kDo, line);
    TQ_ASSIGN_OR_RETURN(stmt->expr, ParseTuple());
    return stmt;
  }

  // {% print a, b %} prints both: a concatenation.
  Statement ParsePrint(int line) {
    StmtPtr stmt = Make(StmtKind::kPrint, line);
    auto all = std::make_unique<Expr>();
    all->kind = ExprKind::kConcat;
    all->line = line;
    while (Current().type != TokenType::kBlockEnd) {
      if (!all->items.empty()) TQ_RETURN_IF_ERROR(ExpectOperator(","));
      TQ_ASSIGN_OR_RETURN(ExprPtr item, ParseExpression());
      all->items.push_back(std::move(item));
    }
    stmt->expr = std::move(all);
    return stmt;
  }

  Statement ParseLoopControl(int line) {
    const bool is_break = AtName("break");
    if (loop_depth_ == 0) {
      return Fail(line, fmt::format("'{}' stands outside of a loop", Current().text));
    }
    Next();
    return Make(is_break ? StmtKind::kBreak : StmtKind::kContinue, line);
  }

  int loop_depth_ = 0;
};

}  // namespace

Result<TemplateTree> ParseTemplate(std::string_view source) {
  TQ_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(source));
  TemplateTree tree;
  Parser parser(std::move(tokens));
  TQ_ASSIGN_OR_RETURN(tree.body, parser.ParseAll());
  TQ_RETURN_IF_ERROR(ResolveNames(&tree));
  return tree;
}

}  // namespace tq::jinja
