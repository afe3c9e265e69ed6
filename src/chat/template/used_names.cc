#include "chat/template/used_names.h"

#include "chat/template/walk.h"

namespace tq::jinja {
namespace {

class Finder {
 public:
  explicit Finder(UsedNames& names) : names_(names) {}

  void Visit(const Function& function) {
    Visit(function.scope);
    for (const ExprPtr& value : function.defaults) Visit(value);
  }

  void Visit(const Body& body) {
    for (const StmtPtr& stmt : body) Visit(*stmt);
  }

 private:
  void Visit(const Scope& scope) {
    for (const ScopeLoad& load : scope.loads) {
      if (load.action == ScopeLoad::Action::kResolve) names_.variables.insert(load.name);
    }
  }

  void Visit(const ExprPtr& expr) {
    if (expr == nullptr) return;
    VisitExpr(*expr, [this](const Expr& inner) {
      if ((inner.kind == ExprKind::kConst || inner.kind == ExprKind::kGetAttr) &&
          inner.value.IsString()) {
        names_.keys.emplace(inner.value.text());
      }
    });
  }

  void Visit(const Stmt& stmt) {
    Visit(stmt.scope);
    Visit(stmt.else_scope);
    if (stmt.function != nullptr) Visit(*stmt.function);
    if (stmt.filter_function != nullptr) Visit(*stmt.filter_function);
    Visit(stmt.expr);
    Visit(stmt.test);
    for (const ExprPtr& value : stmt.values) Visit(value);
    for (const Branch& branch : stmt.branches) {
      Visit(branch.test);
      Visit(branch.body);
    }
    Visit(stmt.body);
    Visit(stmt.else_body);
  }

  UsedNames& names_;
};

}  // namespace

UsedNames FindUsedNames(const TemplateTree& tree) {
  UsedNames names;
  Finder finder(names);
  finder.Visit(tree.function);
  finder.Visit(tree.body);
  return names;
}

}  // namespace tq::jinja
