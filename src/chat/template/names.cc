#include "chat/template/names.h"

#include "chat/template/walk.h"

namespace tq::jinja {

void NameCollector::Declare(const std::string& name) {
  layer_->stores.insert(name);
  layer_->loads[name] = {NameLoad::Action::kParameter, nullptr};
}

void NameCollector::DeclareTarget(const Expr& target) {
  VisitExpr(target, [this](const Expr& expr) {
    if (expr.kind == ExprKind::kName) Declare(expr.name);
  });
}

void NameCollector::Load(const Expr& expr) {
  VisitExpr(expr, [this](const Expr& inner) {
    if (inner.kind == ExprKind::kName || inner.kind == ExprKind::kAttribute) Load(inner.name);
  });
}

void NameCollector::Collect(const Body& body) {
  for (const StmtPtr& stmt : body) Collect(*stmt);
}

const ScopeBuilder* NameCollector::Outer(const std::string& name) const {
  return scope_->parent == nullptr ? nullptr : scope_->parent->Owner(name);
}

void NameCollector::Load(const std::string& name) {
  if (layer_->Knows(name) || Outer(name) != nullptr) return;
  layer_->loads[name] = {NameLoad::Action::kResolve, nullptr};
}

void NameCollector::Store(const std::string& name) {
  layer_->stores.insert(name);
  if (layer_->Knows(name)) return;
  const ScopeBuilder* outer = Outer(name);
  layer_->loads[name] = {outer != nullptr ? NameLoad::Action::kAlias : NameLoad::Action::kUndefined,
                         outer};
}

void NameCollector::StoreTarget(const Expr& target) {
  if (target.kind == ExprKind::kName) Store(target.name);
  if (target.kind == ExprKind::kAttribute) Load(target.name);
  if (target.kind == ExprKind::kTuple) {
    for (const ExprPtr& item : target.items) StoreTarget(*item);
  }
}

void NameCollector::Collect(const Stmt& stmt) {
  switch (stmt.kind) {
    case StmtKind::kPrint:
    case StmtKind::kDo:
    case StmtKind::kFor:
    case StmtKind::kCallBlock:
    case StmtKind::kFilterBlock:
      Load(*stmt.expr);
      break;
    case StmtKind::kSet:
      Load(*stmt.expr);
      StoreTarget(*stmt.target);
      break;
    case StmtKind::kSetBlock:
      StoreTarget(*stmt.target);
      break;
    case StmtKind::kMacro:
      Store(stmt.text);
      break;
    case StmtKind::kWith:
      for (const ExprPtr& value : stmt.values) Load(*value);
      break;
    case StmtKind::kIf:
      CollectIf(stmt);
      break;
    default:
      break;
  }
}

NameLayer NameCollector::InLayer(const std::function<void()>& visit) {
  NameLayer branch;
  branch.below = layer_;
  layer_ = &branch;
  visit();
  layer_ = branch.below;
  return branch;
}

void NameCollector::CollectIf(const Stmt& stmt) {
  Load(*stmt.branches[0].test);
  std::vector<NameLayer> layers;
  layers.push_back(InLayer([&] { Collect(stmt.branches[0].body); }));
  layers.push_back(InLayer([&] {
    for (size_t i = 1; i < stmt.branches.size(); ++i) {
      Load(*stmt.branches[i].test);
      std::vector<NameLayer> inner;
      inner.push_back(InLayer([&] { Collect(stmt.branches[i].body); }));
      Merge(inner);
    }
  }));
  layers.push_back(InLayer([&] { Collect(stmt.else_body); }));
  Merge(layers);
}

// A name that only some branches assign keeps its outer value in the others.
void NameCollector::Merge(const std::vector<NameLayer>& branches) {
  std::set<std::string> stores;
  for (const NameLayer& branch : branches) {
    for (const std::string& name : branch.stores) {
      if (!layer_->Stores(name)) stores.insert(name);
    }
  }
  for (const NameLayer& branch : branches) {
    for (const auto& [name, load] : branch.loads) layer_->loads[name] = load;
    layer_->stores.insert(branch.stores.begin(), branch.stores.end());
  }
  for (const std::string& name : stores) {
    const ScopeBuilder* outer = Outer(name);
    layer_->loads[name] = {outer != nullptr ? NameLoad::Action::kAlias : NameLoad::Action::kResolve,
                           outer};
  }
}

}  // namespace tq::jinja
