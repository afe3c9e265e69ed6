// Walks over the tree, in the order of Jinja's node fields.
#pragma once

#include "chat/template/ast.h"

namespace tq::jinja {

template <typename Fn>
void ForEachChild(const Expr& expr, Fn&& visit) {
  for (const ExprPtr& item : expr.items) {
    if (item != nullptr) visit(*item);
  }
  if (expr.args == nullptr) return;
  for (const ExprPtr& arg : expr.args->positional) visit(*arg);
  for (const auto& [name, arg] : expr.args->named) visit(*arg);
  if (expr.args->more_positional != nullptr) visit(*expr.args->more_positional);
  if (expr.args->more_named != nullptr) visit(*expr.args->more_named);
}

// expr and everything below it.
template <typename Fn>
void VisitExpr(const Expr& expr, const Fn& visit) {
  visit(expr);
  ForEachChild(expr, [&visit](const Expr& child) { VisitExpr(child, visit); });
}

// Which of the implicit macro parameters a body mentions before it assigns to them.
class SpecialNames {
 public:
  explicit SpecialNames(const Body& body) { Visit(body); }

  bool caller = false;
  bool kwargs = false;
  bool varargs = false;

 private:
  void Name(const std::string& name, bool is_load);
  void Load(const ExprPtr& expr);
  void Target(const Expr& target);
  void Visit(const Body& body);
  void Visit(const Stmt& stmt);

  bool caller_assigned_ = false;
  bool kwargs_assigned_ = false;
  bool varargs_assigned_ = false;
};

}  // namespace tq::jinja
