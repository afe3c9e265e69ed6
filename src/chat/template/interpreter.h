// Runs a parsed template. One object per rendering.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "chat/template/ast.h"
#include "chat/template/runtime.h"

namespace tq::jinja {

// Expressions and statements in progress, per allowed call. Bounds the native stack (below 2 MB at
// the default depth).
inline constexpr int kNestingPerCall = 10;

// The variables of one call of a Function.
struct Frame {
  Frame* parent = nullptr;
  std::vector<Value> slots;
};

class Interpreter : public Runtime {
 public:
  // tree and variables must outlive the object. Requires: variables is an object.
  Interpreter(const TemplateTree& tree, const OrderedJson& variables, const TemplateLimits& limits)
      : Runtime(limits), tree_(tree), variables_(variables) {}

  Result<std::string> Run();

 private:
  friend class FilteredSource;
  enum class Flow { kNormal, kBreak, kContinue };

  // Statements (interpreter.cc).
  Result<Flow> Exec(const Body& body, Frame& frame);
  Result<Flow> ExecStmt(const Stmt& stmt, Frame& frame);
  Result<Flow> ExecIf(const Stmt& stmt, Frame& frame);
  Result<Flow> ExecFor(const Stmt& stmt, Frame& frame);
  Result<Flow> ExecSetBlock(const Stmt& stmt, Frame& frame);
  Result<Flow> ExecFilterBlock(const Stmt& stmt, Frame& frame);
  Result<Flow> ExecScoped(const Stmt& stmt, Frame& frame);
  Status ExecCallBlock(const Stmt& stmt, Frame& frame);
  Status Write(const Value& value);
  Status Write(std::string_view text);

  // Loops (loops.cc). `outer` is the frame in which the loop statement stands.
  Result<Flow> RunLoop(const Stmt& stmt, const Value& iterable, Frame& frame, Frame& outer,
                       LoopObject* loop);
  Result<Value> RunRecursiveLoop(const Stmt& stmt, const Value& iterable, Frame& outer,
                                 int64_t depth0);

  // Scopes and names.
  Status EnterScope(const Scope& scope, Frame& frame);
  void LeaveScope(const Scope& scope, Frame& frame);
  Result<Value> Resolve(const std::string& name);
  static Value& At(const Slot& slot, Frame& frame);
  Status Assign(const Expr& target, const Value& value, Frame& frame);
  // A frame that lives as long as its function needs: to the end when macros may refer to it.
  Frame& MakeFrame(const Function& function, Frame* parent, Frame& local);

  // Expressions (eval.cc).
  Result<Value> Eval(const Expr& expr, Frame& frame);
  Result<Value> EvalInner(const Expr& expr, Frame& frame);
  Result<Value> EvalItems(const Expr& expr, Frame& frame);
  Result<Value> EvalDict(const Expr& expr, Frame& frame);
  Result<Value> EvalBinary(const Expr& expr, Frame& frame);
  Result<Value> EvalConcat(const Expr& expr, Frame& frame);
  Result<Value> EvalCompare(const Expr& expr, Frame& frame);
  Result<Value> EvalCond(const Expr& expr, Frame& frame);
  Result<Value> EvalSlice(const Expr& expr, Frame& frame);
  Result<Value> EvalCall(const Expr& expr, Frame& frame);
  Result<Value> EvalFilter(const Expr& expr, Frame& frame);
  Result<Value> EvalTest(const Expr& expr, Frame& frame);
  Result<Args> EvalArgs(const CallArgs& call, Frame& frame);

  // Calls (calls.cc).
  Result<Value> Call(const Value& callee, const Args& args);
  Result<Value> CallMacro(const CallableObject& callable, const Args& args);
  Status BindMacro(const Function& macro, const Args& args, Frame& frame);
  Value MakeMacro(const Function& function, Frame& closure);
  Status EnterCall();

  const TemplateTree& tree_;
  const OrderedJson& variables_;
  std::vector<std::pair<std::string, Value>> resolved_;  // variables that were used so far
  std::vector<std::unique_ptr<Frame>> kept_frames_;
  std::string* out_ = nullptr;
  Value filter_input_;  // text of the filter block whose filters are about to run
  int call_depth_ = 0;
  int nesting_ = 0;
};

}  // namespace tq::jinja
