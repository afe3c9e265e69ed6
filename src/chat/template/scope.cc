#include "chat/template/scope.h"

#include <utility>

#include <fmt/format.h>

#include "chat/template/filters.h"
#include "chat/template/names.h"
#include "chat/template/tests.h"
#include "chat/template/walk.h"

namespace tq::jinja {
namespace {

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
        case NameLoad::Action::kParameter:
          continue;
        case NameLoad::Action::kResolve:
          entry.action = ScopeLoad::Action::kResolve;
          entry.name = name;
          break;
        case NameLoad::Action::kAlias:
          entry.action = ScopeLoad::Action::kAlias;
          entry.source = SlotFrom(layout, *load.owner, name);
          break;
        case NameLoad::Action::kUndefined:
          entry.action = ScopeLoad::Action::kUndefined;
          break;
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
      case StmtKind::kContinue:
        return Status::Ok();
      case StmtKind::kPrint:
      case StmtKind::kDo:
        return ResolveExpr(stmt->expr.get(), scope, soft);
      case StmtKind::kSet:
        TQ_RETURN_IF_ERROR(ResolveExpr(stmt->expr.get(), scope, soft));
        return ResolveTarget(stmt->target.get(), scope);
      case StmtKind::kIf:
        for (Branch& branch : stmt->branches) {
          TQ_RETURN_IF_ERROR(ResolveExpr(branch.test.get(), scope, /*soft=*/true));
          TQ_RETURN_IF_ERROR(ResolveBody(&branch.body, scope, /*soft=*/true));
        }
        return ResolveBody(&stmt->else_body, scope, /*soft=*/true);
      case StmtKind::kFor:
        return ResolveFor(stmt, scope, soft);
      case StmtKind::kSetBlock:
      case StmtKind::kFilterBlock:
      case StmtKind::kGeneration:
      case StmtKind::kWith:
        return ResolveInner(stmt, scope, soft);
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
