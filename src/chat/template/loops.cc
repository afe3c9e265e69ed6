// For loops.
#include <utility>

#include "chat/template/compare.h"
#include "chat/template/interpreter.h"
#include "chat/template/print.h"

namespace tq::jinja {
namespace {

// The items of a list or tuple in place, or of anything else taken out beforehand.
class ItemsSource : public ItemSource {
 public:
  ItemsSource(Value sequence, std::vector<Value> items)
      : sequence_(std::move(sequence)), items_(std::move(items)) {}

  size_t size() const { return all().size(); }
  Result<bool> Next(Runtime&, Value* item) override {
    if (next_ >= all().size()) return false;
    *item = all()[next_++];
    return true;
  }

 private:
  const std::vector<Value>& all() const {
    return sequence_.IsMissing() ? items_ : sequence_.items();
  }
  Value sequence_;
  std::vector<Value> items_;
  size_t next_ = 0;
};

// A generator gives up its items one by one: what a break leaves is still there.
class GeneratorSource : public ItemSource {
 public:
  explicit GeneratorSource(Value generator) : generator_(std::move(generator)) {}

  Result<bool> Next(Runtime& rt, Value* item) override {
    auto& generator = generator_.As<GeneratorObject>();
    TQ_RETURN_IF_ERROR(FillGenerator(rt, generator));
    if (generator.position >= generator.items.size()) return false;
    *item = generator.items[generator.position++];
    return true;
  }

 private:
  Value generator_;
};

// However the loop ends, its object lets go of everything (a value could contain the loop itself).
class LoopCloser {
 public:
  explicit LoopCloser(LoopObject* loop) : loop_(loop) {}
  ~LoopCloser() { loop_->Close(); }
  LoopCloser(const LoopCloser&) = delete;
  LoopCloser& operator=(const LoopCloser&) = delete;

 private:
  LoopObject* loop_;
};

}  // namespace

// `for x in y if test`: tests run when the loop asks for the next item, so they see what the body
// has done before.
class FilteredSource : public ItemSource {
 public:
  FilteredSource(Interpreter& interpreter, const Stmt& stmt, Frame& outer,
                 std::shared_ptr<ItemSource> inner)
      : interpreter_(interpreter), stmt_(stmt), inner_(std::move(inner)) {
    frame_.parent = &outer;
    frame_.slots.resize(static_cast<size_t>(stmt.filter_function->num_slots));
  }

  Result<bool> Next(Runtime& rt, Value* item) override {
    if (!started_) {
      TQ_RETURN_IF_ERROR(interpreter_.EnterScope(stmt_.filter_function->scope, frame_));
      started_ = true;
    }
    while (true) {
      TQ_ASSIGN_OR_RETURN(const bool more, inner_->Next(rt, item));
      if (!more) return false;
      TQ_RETURN_IF_ERROR(interpreter_.Assign(*stmt_.filter_target, *item, frame_));
      TQ_ASSIGN_OR_RETURN(const Value passes, interpreter_.Eval(*stmt_.test, frame_));
      if (Truthy(passes)) return true;
    }
  }

 private:
  Interpreter& interpreter_;
  const Stmt& stmt_;
  std::shared_ptr<ItemSource> inner_;
  Frame frame_;
  bool started_ = false;
};

Result<Interpreter::Flow> Interpreter::ExecFor(const Stmt& stmt, Frame& frame) {
  TQ_ASSIGN_OR_RETURN(const Value iterable, Eval(*stmt.expr, frame));
  set_line(stmt.line);
  if (stmt.recursive) {
    TQ_ASSIGN_OR_RETURN(const Value text, RunRecursiveLoop(stmt, iterable, frame, 0));
    TQ_RETURN_IF_ERROR(Write(text));
    return Flow::kNormal;
  }
  const auto loop = New<LoopObject>(0, iterable.depth() + 1);
  const LoopCloser closer(loop.get());
  frame.slots[static_cast<size_t>(stmt.loop_slot)] = Value(Kind::kLoop, loop);
  return RunLoop(stmt, iterable, frame, frame, loop.get());
}

Result<Value> Interpreter::RunRecursiveLoop(const Stmt& stmt, const Value& iterable, Frame& outer,
                                            int64_t depth0) {
  TQ_RETURN_IF_ERROR(EnterCall());
  Frame local;
  Frame& frame = MakeFrame(*stmt.function, &outer, local);
  const auto loop = New<LoopObject>(0, iterable.depth() + 1);
  const LoopCloser closer(loop.get());
  loop->depth0 = depth0;
  loop->recurse = [this, &stmt, &outer](const Value& inner, int64_t depth) {
    return RunRecursiveLoop(stmt, inner, outer, depth);
  };
  frame.slots[static_cast<size_t>(stmt.loop_slot)] = Value(Kind::kLoop, loop);
  std::string text;
  std::string* const outer_out = std::exchange(out_, &text);
  TQ_ASSIGN_OR_RETURN(const Flow flow, RunLoop(stmt, iterable, frame, outer, loop.get()));
  static_cast<void>(flow);
  out_ = outer_out;
  --call_depth_;
  return String(std::move(text));
}

Result<Interpreter::Flow> Interpreter::RunLoop(const Stmt& stmt, const Value& iterable,
                                               Frame& frame, Frame& outer, LoopObject* loop) {
  if (iterable.Is(Kind::kGenerator)) {
    loop->source = std::make_shared<GeneratorSource>(iterable);
  } else {
    const bool in_place = iterable.Is(Kind::kList) || iterable.Is(Kind::kTuple);
    std::vector<Value> items;
    if (!in_place) {
      TQ_ASSIGN_OR_RETURN(items, Iterate(*this, iterable));
    }
    auto source = std::make_shared<ItemsSource>(in_place ? iterable : Value(), std::move(items));
    if (stmt.test == nullptr) loop->length = static_cast<int64_t>(source->size());
    loop->source = std::move(source);
  }
  if (stmt.test != nullptr) {
    loop->source = std::make_shared<FilteredSource>(*this, stmt, outer, loop->source);
  }
  const Value loop_value = frame.slots[static_cast<size_t>(stmt.loop_slot)];
  bool completed = false;
  while (true) {
    TQ_ASSIGN_OR_RETURN(const bool more, loop->Advance(*this));
    if (!more) break;
    TQ_RETURN_IF_ERROR(Assign(*stmt.target, loop->current, frame));
    frame.slots[static_cast<size_t>(stmt.loop_slot)] = loop_value;
    TQ_RETURN_IF_ERROR(EnterScope(stmt.scope, frame));
    TQ_ASSIGN_OR_RETURN(const Flow flow, Exec(stmt.body, frame));
    if (flow == Flow::kBreak) break;
    if (flow == Flow::kNormal) completed = true;
  }
  LeaveScope(stmt.scope, frame);
  // As in Jinja: a loop whose every pass was cut short runs its else, too.
  if (completed || stmt.else_body.empty()) return Flow::kNormal;
  TQ_RETURN_IF_ERROR(EnterScope(stmt.else_scope, frame));
  TQ_ASSIGN_OR_RETURN(const Flow flow, Exec(stmt.else_body, frame));
  LeaveScope(stmt.else_scope, frame);
  return flow;
}

}  // namespace tq::jinja
