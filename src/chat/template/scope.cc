#include "chat/template/scope.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "chat/template/filters.h"
#include "chat/template/tests.h"
#include "chat/template/walk.h"

namespace tq::jinja {
namespace {

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

  void Declare(const std::string& name) {
    layer_->stores.insert(name);
    layer_->loads[name] = {NameLoad::Action::kParameter, nullptr};
  }
  void DeclareTarget(const Expr& target) {
    VisitExpr(target, [this](const Expr& expr) {
      if (expr.kind == ExprKind::kName) Declare(expr.name);
    });
  }
  void Load(const Expr& expr) {
    VisitExpr(expr, [this](const Expr& inner) {
      if (inner.kind == ExprKind::kName || inner.kind == ExprKind::kAttribute) Load(inner.name);
    });
  }
  void LoadIf(const ExprPtr& expr) {
    if (expr != nullptr) Load(*expr);
  }
  void Collect(const Body& body) {
    for (const StmtPtr& stmt : body) Collect(*stmt);
  }

 private:
  const ScopeBuilder* Outer(const std::string& name) const {
    return scope_->parent == nullptr ? nullptr : scope_->parent->Owner(name);
  }

  void Load(const std::string& name) {
    if (layer_->Knows(name) || Outer(name) != nullptr) return;
    layer_->loads[name] = {NameLoad::Action::kResolve, nullptr};
  }

  void Store(const std::string& name) {
    layer_->stores.insert(name);
    if (layer_->Knows(name)) return;
    const ScopeBuilder* outer = Outer(name);
    layer_->loads[name] = {outer != nullptr ? NameLoad::Action::kAlias : NameLoad::Action::kUndefined,
                           outer};
  }

  void StoreTarget(const Expr& target) {
    if (target.kind == ExprKind::kName) Store(target.name);
    if (target.kind == ExprKind::kAttribute) Load(target.name);
    if (target.kind == ExprKind::kTuple) {
      for (const ExprPtr& item : target.items) StoreTarget(*item);
    }
  }

  void Collect(const Stmt& stmt) {
    switch (stmt.kind) {
      case StmtKind::kPrint:
      case StmtKind::kDo:
      case StmtKind::kFor:
      case StmtKind::kCallBlock:
      case StmtKind::kFilterBlock: Load(*stmt.expr); break;
      case StmtKind::kSet:
        Load(*stmt.expr);
        StoreTarget(*stmt.target);
        break;
      case StmtKind::kSetBlock: StoreTarget(*stmt.target); break;
      case StmtKind::kMacro: Store(stmt.text); break;
      case StmtKind::kWith:
        for (const ExprPtr& value : stmt.values) Load(*value);
        break;
      case StmtKind::kIf: CollectIf(stmt); break;
      default: break;
    }
  }

  NameLayer InLayer(const std::function<void()>& visit) {
    NameLayer branch;
    branch.below = layer_;
    layer_ = &branch;
    visit();
    layer_ = branch.below;
    return branch;
  }

  void CollectIf(const Stmt& stmt) {
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
  void Merge(const std::vector<NameLayer>& branches) {
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

  ScopeBuilder* scope_;
  NameLayer* layer_;
};

// Second pass: slots into the tree, scope by scope.
class Resolver {
 public:
  Status Run(TemplateTree* tree) {
    FunctionLayout layout{&tree->function, nullptr, {}};
    ScopeBuilder scope(&layout, nullptr);
    NameCollector(&scope).Collect(tree->body);
    TQ_RETURN_IF_ERROR(ResolveBody(&tree->body, scope, /*soft=*/false));
    Finish(scope, layout, &tree->function.scope);
    return Status::Ok();
  }

 private:
  static Status Fail(int line, std::string_view what) {
    return Corrupt(fmt::format("chat template line {}: {}", line, what));
  }

  static Slot SlotFrom(const FunctionLayout& from, const ScopeBuilder& owner,
                       const std::string& name) {
    Slot slot;
    for (const FunctionLayout* at = &from; at != nullptr && at != owner.layout; at = at->parent) {
      ++slot.hops;
    }
    slot.index = owner.layout->SlotOf(owner.level, name);
    return slot;
  }

  // What must happen when the scope is entered and left.
  static void Finish(const ScopeBuilder& scope, const FunctionLayout& layout, Scope* out) {
    for (const auto& [name, load] : scope.names.loads) {
      const int index = scope.layout->SlotOf(scope.level, name);
      out->clear.push_back(index);
      ScopeLoad entry;
      entry.index = index;
      switch (load.action) {
        case NameLoad::Action::kParameter: continue;
        case NameLoad::Action::kResolve:
          entry.action = ScopeLoad::Action::kResolve;
          entry.name = name;
          break;
        case NameLoad::Action::kAlias:
          entry.action = ScopeLoad::Action::kAlias;
          entry.source = SlotFrom(layout, *load.owner, name);
          break;
        case NameLoad::Action::kUndefined: entry.action = ScopeLoad::Action::kUndefined; break;
      }
      out->loads.push_back(std::move(entry));
    }
  }

  Status ResolveName(Expr* expr, const ScopeBuilder& scope) {
    const ScopeBuilder* owner = scope.Owner(expr->name);
    if (owner == nullptr) {
      return Internal(fmt::format("chat template line {}: name '{}' was not collected", expr->line,
                                  expr->name));
    }
    expr->slot = SlotFrom(*scope.layout, *owner, expr->name);
    return Status::Ok();
  }

  Status ResolveExpr(Expr* expr, const ScopeBuilder& scope, bool soft) {
    if (expr->kind == ExprKind::kName || expr->kind == ExprKind::kAttribute) {
      return ResolveName(expr, scope);
    }
    // The branches of an inline if may never run.
    if (expr->kind == ExprKind::kCond) soft = true;
    if (expr->kind == ExprKind::kFilter) {
      TQ_ASSIGN_OR_RETURN(expr->filter, FindFilter(expr->name, expr->line, soft));
    } else if (expr->kind == ExprKind::kTest) {
      TQ_ASSIGN_OR_RETURN(expr->test, FindTest(expr->name, expr->line, soft));
    }
    Status status;
    ForEachChild(*expr, [&](Expr& child) {
      if (status.ok()) status = ResolveExpr(&child, scope, soft);
    });
    return status;
  }

  Status ResolveIf(const ExprPtr& expr, const ScopeBuilder& scope, bool soft) {
    return expr == nullptr ? Status::Ok() : ResolveExpr(expr.get(), scope, soft);
  }

  Status ResolveTarget(Expr* target, const ScopeBuilder& scope) {
    if (for_depth_ > 0 && target->kind == ExprKind::kName && target->name == "loop") {
      return Fail(target->line, "the variable 'loop' of a for loop cannot be assigned to");
    }
    if (target->kind != ExprKind::kTuple) return ResolveName(target, scope);
    for (const ExprPtr& item : target->items) TQ_RETURN_IF_ERROR(ResolveTarget(item.get(), scope));
    return Status::Ok();
  }

  Status ResolveBody(Body* body, const ScopeBuilder& scope, bool soft) {
    for (const StmtPtr& stmt : *body) TQ_RETURN_IF_ERROR(ResolveStmt(stmt.get(), scope, soft));
    return Status::Ok();
  }

  Status ResolveStmt(Stmt* stmt, const ScopeBuilder& scope, bool soft) {
    switch (stmt->kind) {
      case StmtKind::kText:
      case StmtKind::kBreak:
      case StmtKind::kContinue: return Status::Ok();
      case StmtKind::kPrint:
      case StmtKind::kDo: return ResolveExpr(stmt->expr.get(), scope, soft);
      case StmtKind::kSet:
        TQ_RETURN_IF_ERROR(ResolveExpr(stmt->expr.get(), scope, soft));
        return ResolveTarget(stmt->target.get(), scope);
      case StmtKind::kIf:
        for (Branch& branch : stmt->branches) {
          TQ_RETURN_IF_ERROR(ResolveExpr(branch.test.get(), scope, /*soft=*/true));
          TQ_RETURN_IF_ERROR(ResolveBody(&branch.body, scope, /*soft=*/true));
        }
        return ResolveBody(&stmt->else_body, scope, /*soft=*/true);
      case StmtKind::kFor: return ResolveFor(stmt, scope, soft);
      case StmtKind::kSetBlock:
      case StmtKind::kFilterBlock:
      case StmtKind::kGeneration:
      case StmtKind::kWith: return ResolveInner(stmt, scope, soft);
      case StmtKind::kMacro: {
        const ScopeBuilder* owner = scope.Owner(stmt->text);
        if (owner == nullptr) return Internal("a macro's name was not collected");
        stmt->slot = SlotFrom(*scope.layout, *owner, stmt->text);
        return ResolveFunction(stmt, scope);
      }
      case StmtKind::kCallBlock:
        TQ_RETURN_IF_ERROR(ResolveExpr(stmt->expr.get(), scope, soft));
        return ResolveFunction(stmt, scope);
    }
    return Status::Ok();
  }

  // Blocks with a scope of their own in the same function.
  Status ResolveInner(Stmt* stmt, const ScopeBuilder& scope, bool soft) {
    ScopeBuilder inner(scope.layout, &scope);
    NameCollector collector(&inner);
    for (const ExprPtr& target : stmt->targets) collector.DeclareTarget(*target);
    collector.Collect(stmt->body);
    if (stmt->kind != StmtKind::kWith) collector.LoadIf(stmt->expr);
    for (const ExprPtr& value : stmt->values) {
      TQ_RETURN_IF_ERROR(ResolveExpr(value.get(), scope, soft));
    }
    for (const ExprPtr& target : stmt->targets) {
      TQ_RETURN_IF_ERROR(ResolveTarget(target.get(), inner));
    }
    TQ_RETURN_IF_ERROR(ResolveBody(&stmt->body, inner, /*soft=*/false));
    TQ_RETURN_IF_ERROR(ResolveIf(stmt->expr, inner, /*soft=*/false));
    if (stmt->target != nullptr) TQ_RETURN_IF_ERROR(ResolveTarget(stmt->target.get(), scope));
    Finish(inner, *scope.layout, &stmt->scope);
    return Status::Ok();
  }

  static ExprPtr CloneTarget(const Expr& target) {
    auto copy = std::make_unique<Expr>();
    copy->kind = target.kind;
    copy->line = target.line;
    copy->name = target.name;
    for (const ExprPtr& item : target.items) copy->items.push_back(CloneTarget(*item));
    return copy;
  }

  Status ResolveFor(Stmt* stmt, const ScopeBuilder& scope, bool soft) {
    TQ_RETURN_IF_ERROR(ResolveExpr(stmt->expr.get(), scope, soft));
    ++for_depth_;
    if (stmt->test != nullptr) TQ_RETURN_IF_ERROR(ResolveLoopFilter(stmt, scope));

    FunctionLayout own_layout;
    FunctionLayout* layout = scope.layout;
    if (stmt->recursive) {
      stmt->function = std::make_unique<Function>();
      stmt->function->name = "loop";
      own_layout = {stmt->function.get(), scope.layout, {}};
      layout = &own_layout;
    }
    ScopeBuilder body_scope(layout, &scope);
    NameCollector collector(&body_scope);
    collector.Declare("loop");
    collector.DeclareTarget(*stmt->target);
    collector.Collect(stmt->body);
    TQ_RETURN_IF_ERROR(ResolveTarget(stmt->target.get(), body_scope));
    stmt->loop_slot = layout->SlotOf(body_scope.level, "loop");
    TQ_RETURN_IF_ERROR(ResolveBody(&stmt->body, body_scope, /*soft=*/false));
    Finish(body_scope, *layout, &stmt->scope);

    ScopeBuilder else_scope(layout, &scope);
    NameCollector(&else_scope).Collect(stmt->else_body);
    TQ_RETURN_IF_ERROR(ResolveBody(&stmt->else_body, else_scope, /*soft=*/false));
    Finish(else_scope, *layout, &stmt->else_scope);
    --for_depth_;
    return Status::Ok();
  }

  // `for x in y if test`: a function of its own that yields the items that pass.
  Status ResolveLoopFilter(Stmt* stmt, const ScopeBuilder& scope) {
    stmt->filter_function = std::make_unique<Function>();
    FunctionLayout layout{stmt->filter_function.get(), scope.layout, {}};
    ScopeBuilder test_scope(&layout, &scope);
    NameCollector collector(&test_scope);
    collector.DeclareTarget(*stmt->target);
    collector.Load(*stmt->test);
    stmt->filter_target = CloneTarget(*stmt->target);
    TQ_RETURN_IF_ERROR(ResolveTarget(stmt->filter_target.get(), test_scope));
    TQ_RETURN_IF_ERROR(ResolveExpr(stmt->test.get(), test_scope, /*soft=*/false));
    Finish(test_scope, layout, &stmt->filter_function->scope);
    return Status::Ok();
  }

  // Macros and callers.
  Status ResolveFunction(Stmt* stmt, const ScopeBuilder& scope) {
    for (FunctionLayout* outer = scope.layout; outer != nullptr; outer = outer->parent) {
      outer->function->is_captured = true;
    }
    Function& function = *stmt->function;
    function.body = &stmt->body;
    FunctionLayout layout{&function, scope.layout, {}};
    ScopeBuilder inner(&layout, &scope);
    NameCollector collector(&inner);
    SpecialNames special(stmt->body);
    for (size_t i = 0; i < stmt->params.size(); ++i) {
      const std::string& name = stmt->params[i]->name;
      collector.Declare(name);
      function.param_names.push_back(name);
      function.param_slots.push_back(layout.SlotOf(inner.level, name));
      if (name == "caller") {
        function.explicit_caller = true;
        if (special.caller && i + function.defaults.size() < stmt->params.size()) {
          return Fail(stmt->line, "the parameter 'caller' needs a default");
        }
      }
      if (name == "kwargs") special.kwargs = false;
      if (name == "varargs") special.varargs = false;
    }
    const auto declare = [&](const char* name, bool used, int* slot) {
      if (!used) return;
      collector.Declare(name);
      *slot = layout.SlotOf(inner.level, name);
    };
    declare("caller", special.caller && !function.explicit_caller, &function.caller_slot);
    declare("kwargs", special.kwargs, &function.kwargs_slot);
    declare("varargs", special.varargs, &function.varargs_slot);
    for (const ExprPtr& value : function.defaults) collector.Load(*value);
    collector.Collect(stmt->body);
    for (const ExprPtr& value : function.defaults) {
      TQ_RETURN_IF_ERROR(ResolveExpr(value.get(), inner, /*soft=*/false));
    }
    TQ_RETURN_IF_ERROR(ResolveBody(&stmt->body, inner, /*soft=*/false));
    Finish(inner, layout, &function.scope);
    return Status::Ok();
  }

  int for_depth_ = 0;
};

}  // namespace

Status ResolveNames(TemplateTree* tree) { return Resolver().Run(tree); }

}  // namespace tq::jinja
