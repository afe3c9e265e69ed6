#include "chat/template/walk.h"

namespace tq::jinja {

void SpecialNames::Name(const std::string& name, bool is_load) {
  const auto note = [&](const char* special, bool* mentioned, bool* assigned) {
    if (name != special) return;
    if (!is_load) {
      *assigned = true;
    } else if (!*assigned) {
      *mentioned = true;
    }
  };
  note("caller", &caller, &caller_assigned_);
  note("kwargs", &kwargs, &kwargs_assigned_);
  note("varargs", &varargs, &varargs_assigned_);
}

void SpecialNames::Load(const ExprPtr& expr) {
  if (expr == nullptr) return;
  VisitExpr(*expr, [this](const Expr& inner) {
    if (inner.kind == ExprKind::kName) Name(inner.name, /*is_load=*/true);
  });
}

void SpecialNames::Target(const Expr& target) {
  if (target.kind == ExprKind::kName) Name(target.name, /*is_load=*/false);
  for (const ExprPtr& item : target.items) Target(*item);
}

void SpecialNames::Visit(const Body& body) {
  for (const StmtPtr& stmt : body) Visit(*stmt);
}

void SpecialNames::Visit(const Stmt& stmt) {
  if (stmt.kind == StmtKind::kCallBlock) Load(stmt.expr);
  if (stmt.target != nullptr) Target(*stmt.target);
  for (const ExprPtr& target : stmt.targets) Target(*target);
  for (const ExprPtr& value : stmt.values) Load(value);
  for (const ExprPtr& param : stmt.params) Target(*param);
  if (stmt.function != nullptr) {
    for (const ExprPtr& value : stmt.function->defaults) Load(value);
  }
  if (stmt.kind != StmtKind::kCallBlock && stmt.kind != StmtKind::kFilterBlock) Load(stmt.expr);
  for (const Branch& branch : stmt.branches) {
    Load(branch.test);
    Visit(branch.body);
  }
  Visit(stmt.body);
  Visit(stmt.else_body);
  if (stmt.kind == StmtKind::kFilterBlock) Load(stmt.expr);
  Load(stmt.test);
}

}  // namespace tq::jinja
