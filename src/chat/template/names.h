// Which names a scope loads and stores: the first pass of name resolution (scope.h). Private to it.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "chat/template/ast.h"

namespace tq::jinja {

// The frame layout of one Function while it is being built.
struct FunctionLayout {
  Function* function = nullptr;
  FunctionLayout* parent = nullptr;
  // Scopes of one depth share slots: they are never active together.
  std::map<std::pair<int, std::string>, int> slots;

  int SlotOf(int level, const std::string& name) {
    const auto [it, inserted] = slots.try_emplace({level, name}, function->num_slots);
    if (inserted) ++function->num_slots;
    return it->second;
  }
};

struct ScopeBuilder;

struct NameLoad {
  enum class Action { kParameter, kResolve, kAlias, kUndefined };
  Action action = Action::kUndefined;
  const ScopeBuilder* owner = nullptr;  // kAlias: where the outer name lives
};

// Names of a scope, or of one branch of an `if` in it on top of what came before the branch.
struct NameLayer {
  NameLayer* below = nullptr;
  std::map<std::string, NameLoad> loads;
  std::set<std::string> stores;

  bool Knows(const std::string& name) const {
    for (const NameLayer* layer = this; layer != nullptr; layer = layer->below) {
      if (layer->loads.count(name) > 0) return true;
    }
    return false;
  }
  bool Stores(const std::string& name) const {
    for (const NameLayer* layer = this; layer != nullptr; layer = layer->below) {
      if (layer->stores.count(name) > 0) return true;
    }
    return false;
  }
};

struct ScopeBuilder {
  FunctionLayout* layout = nullptr;
  const ScopeBuilder* parent = nullptr;
  int level = 0;
  NameLayer names;

  ScopeBuilder(FunctionLayout* function_layout, const ScopeBuilder* outer)
      : layout(function_layout), parent(outer), level(outer == nullptr ? 0 : outer->level + 1) {}

  const ScopeBuilder* Owner(const std::string& name) const {
    for (const ScopeBuilder* scope = this; scope != nullptr; scope = scope->parent) {
      if (scope->names.Knows(name)) return scope;
    }
    return nullptr;
  }
};

// First pass over a scope's own statements: which names it loads and stores, in order.
class NameCollector {
 public:
  explicit NameCollector(ScopeBuilder* scope) : scope_(scope), layer_(&scope->names) {}

  void Declare(const std::string& name);
  void DeclareTarget(const Expr& target);
  void Load(const Expr& expr);
  void LoadIf(const ExprPtr& expr) {
    if (expr != nullptr) Load(*expr);
  }
  void Collect(const Body& body);

 private:
  const ScopeBuilder* Outer(const std::string& name) const;
  void Load(const std::string& name);
  void Store(const std::string& name);
  void StoreTarget(const Expr& target);
  void Collect(const Stmt& stmt);
  NameLayer InLayer(const std::function<void()>& visit);
  void CollectIf(const Stmt& stmt);
  void Merge(const std::vector<NameLayer>& branches);

  ScopeBuilder* scope_;
  NameLayer* layer_;
};

}  // namespace tq::jinja
