#include "chat/template/interpreter.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "chat/template/compare.h"
#include "chat/template/functions.h"
#include "chat/template/json_value.h"
#include "chat/template/operators.h"
#include "chat/template/print.h"

namespace tq::jinja {
Result<std::string> Interpreter::Run() {
  std::string output;
  out_ = &output;
  auto frame = std::make_unique<Frame>();
  frame->slots.resize(static_cast<size_t>(tree_.function.num_slots));
  kept_frames_.push_back(std::move(frame));
  Frame& root = *kept_frames_.front();
  TQ_RETURN_IF_ERROR(EnterScope(tree_.function.scope, root));
  TQ_ASSIGN_OR_RETURN(const Flow flow, Exec(tree_.body, root));
  static_cast<void>(flow);
  return output;
}

Status Interpreter::Write(std::string_view text) {
  TQ_RETURN_IF_ERROR(CheckBytes(out_->size() + text.size()));
  TQ_RETURN_IF_ERROR(StepBytes(text.size()));
  *out_ += text;
  return Status::Ok();
}

Status Interpreter::Write(const Value& value) {
  if (value.IsString()) return Write(value.text());
  TQ_ASSIGN_OR_RETURN(const std::string text, Str(*this, value));
  return Write(std::string_view(text));
}

Result<Interpreter::Flow> Interpreter::Exec(const Body& body, Frame& frame) {
  if (++nesting_ > limits().max_depth * kNestingPerCall) {
    return FailLimit("statements and expressions are nested too deeply");
  }
  for (const StmtPtr& stmt : body) {
    set_line(stmt->line);
    TQ_RETURN_IF_ERROR(Step());
    TQ_ASSIGN_OR_RETURN(const Flow flow, ExecStmt(*stmt, frame));
    if (flow != Flow::kNormal) {
      --nesting_;
      return flow;
    }
  }
  --nesting_;
  return Flow::kNormal;
}

Result<Interpreter::Flow> Interpreter::ExecStmt(const Stmt& stmt, Frame& frame) {
  switch (stmt.kind) {
    case StmtKind::kText:
      TQ_RETURN_IF_ERROR(Write(std::string_view(stmt.text)));
      break;
    case StmtKind::kPrint: {
      TQ_ASSIGN_OR_RETURN(const Value value, Eval(*stmt.expr, frame));
      TQ_RETURN_IF_ERROR(Write(value));
      break;
    }
    case StmtKind::kDo: {
      TQ_ASSIGN_OR_RETURN(const Value value, Eval(*stmt.expr, frame));
      break;
    }
    case StmtKind::kSet: {
      TQ_ASSIGN_OR_RETURN(const Value value, Eval(*stmt.expr, frame));
      TQ_RETURN_IF_ERROR(Assign(*stmt.target, value, frame));
      break;
    }
    case StmtKind::kIf:
      return ExecIf(stmt, frame);
    case StmtKind::kFor:
      return ExecFor(stmt, frame);
    case StmtKind::kSetBlock:
      return ExecSetBlock(stmt, frame);
    case StmtKind::kFilterBlock:
      return ExecFilterBlock(stmt, frame);
    case StmtKind::kGeneration:
    case StmtKind::kWith:
      return ExecScoped(stmt, frame);
    case StmtKind::kMacro:
      At(stmt.slot, frame) = MakeMacro(*stmt.function, frame);
      break;
    case StmtKind::kCallBlock:
      TQ_RETURN_IF_ERROR(ExecCallBlock(stmt, frame));
      break;
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNormal;
}

Result<Interpreter::Flow> Interpreter::ExecIf(const Stmt& stmt, Frame& frame) {
  for (const Branch& branch : stmt.branches) {
    TQ_ASSIGN_OR_RETURN(const Value test, Eval(*branch.test, frame));
    if (Truthy(test)) return Exec(branch.body, frame);
  }
  return Exec(stmt.else_body, frame);
}

// {% set x %}...{% endset %}
Result<Interpreter::Flow> Interpreter::ExecSetBlock(const Stmt& stmt, Frame& frame) {
  TQ_RETURN_IF_ERROR(EnterScope(stmt.scope, frame));
  std::string text;
  std::string* const outer = std::exchange(out_, &text);
  TQ_ASSIGN_OR_RETURN(const Flow flow, Exec(stmt.body, frame));
  out_ = outer;
  // A break or continue throws the text away.
  if (flow == Flow::kNormal) {
    Value value = String(std::move(text));
    if (stmt.expr != nullptr) {
      filter_input_ = value;
      TQ_ASSIGN_OR_RETURN(value, Eval(*stmt.expr, frame));
    }
    TQ_RETURN_IF_ERROR(Assign(*stmt.target, value, frame));
  }
  LeaveScope(stmt.scope, frame);
  return flow;
}

Result<Interpreter::Flow> Interpreter::ExecFilterBlock(const Stmt& stmt, Frame& frame) {
  TQ_RETURN_IF_ERROR(EnterScope(stmt.scope, frame));
  std::string text;
  std::string* const outer = std::exchange(out_, &text);
  TQ_ASSIGN_OR_RETURN(const Flow flow, Exec(stmt.body, frame));
  out_ = outer;
  if (flow == Flow::kNormal) {
    filter_input_ = String(std::move(text));
    TQ_ASSIGN_OR_RETURN(const Value value, Eval(*stmt.expr, frame));
    TQ_RETURN_IF_ERROR(Write(value));
  }
  LeaveScope(stmt.scope, frame);
  return flow;
}

Result<Interpreter::Flow> Interpreter::ExecScoped(const Stmt& stmt, Frame& frame) {
  std::vector<Value> values;
  for (const ExprPtr& expr : stmt.values) {
    TQ_ASSIGN_OR_RETURN(Value value, Eval(*expr, frame));
    values.push_back(std::move(value));
  }
  TQ_RETURN_IF_ERROR(EnterScope(stmt.scope, frame));
  for (size_t i = 0; i < values.size(); ++i) {
    TQ_RETURN_IF_ERROR(Assign(*stmt.targets[i], values[i], frame));
  }
  TQ_ASSIGN_OR_RETURN(const Flow flow, Exec(stmt.body, frame));
  LeaveScope(stmt.scope, frame);
  return flow;
}

Status Interpreter::ExecCallBlock(const Stmt& stmt, Frame& frame) {
  const Expr& call = *stmt.expr;
  TQ_ASSIGN_OR_RETURN(const Value callee, Eval(*call.items[0], frame));
  TQ_ASSIGN_OR_RETURN(Args args, EvalArgs(*call.args, frame));
  args.named.emplace_back("caller", MakeMacro(*stmt.function, frame));
  TQ_ASSIGN_OR_RETURN(const Value value, Call(callee, args));
  set_line(stmt.line);
  return Write(value);
}

Status Interpreter::EnterScope(const Scope& scope, Frame& frame) {
  for (const ScopeLoad& load : scope.loads) {
    Value& slot = frame.slots[static_cast<size_t>(load.index)];
    switch (load.action) {
      case ScopeLoad::Action::kResolve: {
        TQ_ASSIGN_OR_RETURN(slot, Resolve(load.name));
        break;
      }
      case ScopeLoad::Action::kAlias:
        slot = Value(At(load.source, frame));
        break;
      case ScopeLoad::Action::kUndefined:
        slot = Value();
        break;
    }
  }
  return Status::Ok();
}

void Interpreter::LeaveScope(const Scope& scope, Frame& frame) {
  for (const int index : scope.clear) frame.slots[static_cast<size_t>(index)] = Value();
}

Result<Value> Interpreter::Resolve(const std::string& name) {
  for (const auto& [known, value] : resolved_) {
    if (known == name) return value;
  }
  Value value;
  const auto it = variables_.find(name);
  if (it != variables_.end()) {
    TQ_ASSIGN_OR_RETURN(value, ValueFromJson(*this, *it, name));
  } else {
    value = FindGlobal(*this, name);
  }
  resolved_.emplace_back(name, value);
  return value;
}

Value& Interpreter::At(const Slot& slot, Frame& frame) {
  Frame* at = &frame;
  for (int i = 0; i < slot.hops; ++i) at = at->parent;
  return at->slots[static_cast<size_t>(slot.index)];
}

Status Interpreter::Assign(const Expr& target, const Value& value, Frame& frame) {
  switch (target.kind) {
    case ExprKind::kName:
      At(target.slot, frame) = value;
      return Status::Ok();
    case ExprKind::kAttribute: {
      const Value object = At(target.slot, frame);
      if (!object.Is(Kind::kNamespace)) {
        return Fail("cannot assign attribute '{}' on '{}', which is not a namespace",
                    target.attribute, target.name);
      }
      auto& space = object.As<NamespaceObject>();
      if (space.attributes.Find(target.attribute) == nullptr) {
        Charge(&space, 2 * sizeof(Value) + 32);
      }
      space.attributes.Set(String(target.attribute), HashText(target.attribute), value);
      return Status::Ok();
    }
    default:
      break;
  }
  if (!IsIterable(value)) return Fail("cannot unpack a value of type {}", TypeName(value));
  TQ_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(*this, value));
  if (items.size() != target.items.size()) {
    return Fail("expected {} values to unpack, found {}", target.items.size(), items.size());
  }
  for (size_t i = 0; i < items.size(); ++i) {
    TQ_RETURN_IF_ERROR(Assign(*target.items[i], items[i], frame));
  }
  return Status::Ok();
}

Frame& Interpreter::MakeFrame(const Function& function, Frame* parent, Frame& local) {
  Frame* frame = &local;
  if (function.is_captured) {
    kept_frames_.push_back(std::make_unique<Frame>());
    frame = kept_frames_.back().get();
  }
  frame->parent = parent;
  frame->slots.resize(static_cast<size_t>(function.num_slots));
  return *frame;
}

}  // namespace tq::jinja
