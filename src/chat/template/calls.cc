// Calls of macros, functions, methods and recursive loops.
#include <algorithm>

#include "chat/template/compare.h"
#include "chat/template/interpreter.h"
#include "chat/template/print.h"

namespace tq::jinja {

Status Interpreter::EnterCall() {
  if (++call_depth_ <= limits().max_depth) return Status::Ok();
  return FailLimit(
      fmt::format("macros call each other more than {} levels deep", limits().max_depth));
}

Value Interpreter::MakeMacro(const Function& function, Frame& closure) {
  auto object = New<CallableObject>(0, 1);
  object->name = function.name;
  object->macro = &function;
  object->closure = &closure;
  return Value(Kind::kCallable, std::move(object));
}

Result<Value> Interpreter::Call(const Value& callee, const Args& args) {
  switch (callee.kind()) {
    case Kind::kUndefined:
      return FailUndefined(callee);
    case Kind::kCallable: {
      const auto& callable = callee.As<CallableObject>();
      if (callable.macro != nullptr) return CallMacro(callable, args);
      return callable.native(*this, callee, args);
    }
    case Kind::kLoop: {
      auto& loop = callee.As<LoopObject>();
      if (!loop.recurse) return Fail("the loop must be marked 'recursive' to be called");
      if (args.positional.size() != 1 || !args.named.empty()) {
        return Fail("loop() takes one argument, what to iterate over");
      }
      const auto recurse = loop.recurse;
      return recurse(args.positional[0], loop.depth0 + 1);
    }
    case Kind::kJoiner: {
      auto& joiner = callee.As<JoinerObject>();
      if (joiner.used) return joiner.separator;
      joiner.used = true;
      return String("");
    }
    default:
      return Fail("'{}' object is not callable", TypeName(callee));
  }
}

Result<Value> Interpreter::CallMacro(const CallableObject& callable, const Args& args) {
  TQ_RETURN_IF_ERROR(EnterCall());
  const Function& macro = *callable.macro;
  Frame local;
  Frame& frame = MakeFrame(macro, callable.closure, local);
  TQ_RETURN_IF_ERROR(EnterScope(macro.scope, frame));
  TQ_RETURN_IF_ERROR(BindMacro(macro, args, frame));
  std::string text;
  std::string* const outer = std::exchange(out_, &text);
  TQ_ASSIGN_OR_RETURN(const Flow flow, Exec(*macro.body, frame));
  static_cast<void>(flow);
  out_ = outer;
  --call_depth_;
  return String(std::move(text));
}

Status Interpreter::BindMacro(const Function& macro, const Args& args, Frame& frame) {
  const size_t num_params = macro.param_names.size();
  const size_t num_given = std::min(args.positional.size(), num_params);
  std::vector<std::pair<std::string, Value>> named = args.named;
  const auto take = [&named](const std::string& name) {
    const auto it = std::find_if(named.begin(), named.end(),
                                 [&](const auto& entry) { return entry.first == name; });
    if (it == named.end()) return Value();
    Value value = std::move(it->second);
    named.erase(it);
    return value;
  };
  const auto slot = [&frame](int index) -> Value& {
    return frame.slots[static_cast<size_t>(index)];
  };

  for (size_t i = 0; i < num_params; ++i) {
    slot(macro.param_slots[i]) = i < num_given ? args.positional[i] : take(macro.param_names[i]);
  }
  if (macro.caller_slot >= 0) {
    Value caller = take("caller");
    if (caller.IsMissing() || caller.Is(Kind::kNone)) caller = Undefined("No caller defined");
    slot(macro.caller_slot) = caller;
  }
  if (macro.kwargs_slot >= 0) {
    DictBuilder rest(*this);
    for (auto& [name, value] : named) rest.Set(name, std::move(value));
    slot(macro.kwargs_slot) = rest.Take();
  } else if (!named.empty()) {
    return Fail("macro '{}' takes no keyword argument '{}'", macro.name, named[0].first);
  }
  if (macro.varargs_slot >= 0) {
    slot(macro.varargs_slot) =
        Tuple({args.positional.begin() + static_cast<int64_t>(num_given), args.positional.end()});
  } else if (args.positional.size() > num_params) {
    return Fail("macro '{}' takes not more than {} arguments", macro.name, num_params);
  }

  const size_t num_plain = num_params - macro.defaults.size();
  for (size_t i = 0; i < num_params; ++i) {
    Value& param = slot(macro.param_slots[i]);
    if (!param.IsMissing()) continue;
    if (i < num_plain) {
      param = Undefined(fmt::format("parameter '{}' was not provided", macro.param_names[i]));
    } else {
      TQ_ASSIGN_OR_RETURN(Value value, Eval(*macro.defaults[i - num_plain], frame));
      slot(macro.param_slots[i]) = std::move(value);
    }
  }
  return Status::Ok();
}

}  // namespace tq::jinja
