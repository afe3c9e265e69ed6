// The parsed template: plain data. Names are resolved to slots by scope.h before anything runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "chat/template/compare.h"
#include "chat/template/value.h"

namespace tq::jinja {

struct FilterSpec;
struct TestSpec;

// Nesting of expressions and of statements in a template. Jinja itself fails beyond about this.
inline constexpr int kMaxSourceDepth = 200;

// A variable: `hops` functions outwards, then an index into that function's frame.
struct Slot {
  int hops = 0;
  int index = -1;
};

enum class ExprKind : uint8_t {
  kConst,      // value
  kName,       // name, slot
  kAttribute,  // assignment target name.attribute: name, slot, attribute
  kTuple,      // items
  kList,       // items
  kDict,       // items: key, value, key, value ...
  kNot,        // items[0]
  kNegate,     // items[0]
  kPlus,       // items[0]
  kAnd,        // items[0], items[1]; likewise the following
  kOr,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kConcat,   // items
  kCompare,  // items, ops between them
  kCond,     // items: test, then, else (may be null)
  kGetAttr,  // items[0], value: the name
  kGetItem,  // items[0], items[1]
  kSlice,    // items[0], then start, stop, step (each may be null)
  kCall,     // items[0], args
  kFilter,   // items[0] (null inside a filter block), name, filter, args
  kTest,     // items[0], name, test, args
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct CallArgs {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr more_positional;  // *args
  ExprPtr more_named;       // **kwargs
};

struct Expr {
  ExprKind kind = ExprKind::kConst;
  int line = 0;
  int depth = 1;
  std::vector<ExprPtr> items;
  std::vector<CompareOp> ops;
  std::string name;
  std::string attribute;
  std::unique_ptr<CallArgs> args;
  Value value;
  Slot slot;
  // Null: unknown, but in a branch that may never run (an error when it does).
  const FilterSpec* filter = nullptr;
  const TestSpec* test = nullptr;
};

// What happens to a scope's slots when it is entered; all of `clear` become missing when it is
// left.
struct ScopeLoad {
  enum class Action : uint8_t { kResolve, kAlias, kUndefined };
  Action action = Action::kUndefined;
  int index = 0;
  Slot source;       // kAlias
  std::string name;  // kResolve: of a variable given by the caller, or a built-in
};
struct Scope {
  std::vector<ScopeLoad> loads;
  std::vector<int> clear;
};

struct Stmt;

// Code with its own frame: the template, a macro, a caller, a recursive loop, a loop's filter.
struct Function {
  std::string name;
  const std::vector<std::unique_ptr<Stmt>>* body = nullptr;  // macros and callers
  int num_slots = 0;
  bool is_captured = false;  // macros made inside refer to its frame
  Scope scope;
  std::vector<std::string> param_names;
  std::vector<int> param_slots;
  std::vector<ExprPtr> defaults;  // of the last parameters
  bool explicit_caller = false;
  int caller_slot = -1;  // -1: not mentioned in the body
  int kwargs_slot = -1;
  int varargs_slot = -1;
};

enum class StmtKind : uint8_t {
  kText,         // text
  kPrint,        // expr
  kFor,          // target, expr, test, body, else_body
  kIf,           // branches, else_body
  kSet,          // target, expr
  kSetBlock,     // target, expr (a filter chain, or null), body
  kMacro,        // function, params, body
  kCallBlock,    // function, params, expr (the call), body
  kGeneration,   // body
  kFilterBlock,  // expr, body
  kWith,         // targets, values, body
  kDo,           // expr
  kBreak,
  kContinue,
};

using StmtPtr = std::unique_ptr<Stmt>;
using Body = std::vector<StmtPtr>;

struct Branch {
  ExprPtr test;
  Body body;
};

struct Stmt {
  StmtKind kind = StmtKind::kText;
  int line = 0;
  std::string text;
  ExprPtr target;
  ExprPtr expr;
  ExprPtr test;
  Body body;
  Body else_body;
  std::vector<Branch> branches;
  std::vector<ExprPtr> params;  // kName
  std::vector<ExprPtr> targets;
  std::vector<ExprPtr> values;
  bool recursive = false;

  Scope scope;                                // of the body
  Scope else_scope;                           // kFor
  Slot slot;                                  // kMacro: where the macro goes; kCallBlock: unused
  int loop_slot = -1;                         // kFor
  std::unique_ptr<Function> function;         // macros, callers, recursive loops
  std::unique_ptr<Function> filter_function;  // kFor with a test
  ExprPtr filter_target;                      // kFor with a test: the target in that function
};

struct TemplateTree {
  Body body;
  Function function;
};

}  // namespace tq::jinja
