// Runtime: limits, errors with their template line, and the making of values for one rendering.
// Not for evaluation: that is interpreter.h.
#pragma once

#include <fmt/format.h>

#include "chat/chat_template.h"
#include "chat/template/value.h"

namespace tq::jinja {

class Runtime {
 public:
  explicit Runtime(const TemplateLimits& limits) : limits_(limits) {}
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const TemplateLimits& limits() const { return limits_; }
  int line() const { return line_; }
  void set_line(int line) { line_ = line; }

  // kInvalidArgument with the line that is being evaluated.
  Status Fail(std::string_view message) const;
  template <typename... T>
  Status Fail(fmt::format_string<T...> format, T&&... args) const {
    return Fail(std::string_view(fmt::format(format, std::forward<T>(args)...)));
  }
  Status FailUndefined(const Value& undefined) const;
  Status FailLimit(std::string_view what) const;

  // Counts work and checks every limit.
  Status Step(int64_t steps = 1) {
    steps_ += steps;
    if (steps_ > limits_.max_steps || meter_.live_bytes > max_live_bytes()) return StepFailed();
    return Status::Ok();
  }
  // Work on a text of this many bytes.
  Status StepBytes(size_t num_bytes) { return Step(1 + static_cast<int64_t>(num_bytes / 64)); }
  // Before a text of this size is made.
  Status CheckBytes(size_t num_bytes) const;
  // Before a sequence of this size is made.
  Status CheckItems(size_t num_items) const;

  Value String(std::string text, bool markup = false);
  Value List(std::vector<Value> items) { return Sequence(Kind::kList, std::move(items)); }
  Value Tuple(std::vector<Value> items) { return Sequence(Kind::kTuple, std::move(items)); }
  Value Undefined(std::string message);
  Value UndefinedName(std::string_view name);
  // What obj.name gives when there is no such thing.
  Value UndefinedMember(const Value& object, const Value& name);
  Value Namespace();
  Value Range(int64_t start, int64_t stop, int64_t step);
  Value View(Value dict, ViewObject::What what);
  Value Generator(int source_depth, std::function<Status(Runtime&, std::vector<Value>*)> fill);
  Value Method(std::string name, Value self,
               Result<Value> (*native)(Runtime&, const Value&, const Args&));

  template <typename T>
  std::shared_ptr<T> New(size_t extra_bytes, int depth) {
    auto object = std::make_shared<T>();
    Charge(object.get(), sizeof(T) + extra_bytes);
    object->depth = depth;
    if (depth > kMaxValueDepth) too_deep_ = true;
    return object;
  }
  // More bytes for an object that grows.
  void Charge(Object* object, size_t num_bytes) {
    object->meter = &meter_;
    object->charged_bytes += num_bytes;
    meter_.live_bytes += num_bytes;
  }

 private:
  size_t max_live_bytes() const { return too_deep_ ? 0 : limits_.max_output_bytes * 4; }
  Status StepFailed() const;
  Value Sequence(Kind kind, std::vector<Value> items);

  TemplateLimits limits_;
  Meter meter_;
  int64_t steps_ = 0;
  int line_ = 0;
  bool too_deep_ = false;
  std::vector<std::unique_ptr<NamespaceObject>> namespaces_;
};

// Collects a dict; the last value of a key wins and keeps the first one's place.
class DictBuilder {
 public:
  explicit DictBuilder(Runtime& rt) : rt_(rt), dict_(std::make_shared<DictObject>()) {}
  void Set(std::string_view key, Value value);
  // Errors: a key that is not hashable.
  Status Set(const Value& key, Value value);
  Value Take();

 private:
  Runtime& rt_;
  std::shared_ptr<DictObject> dict_;
  int depth_ = 1;
};

}  // namespace tq::jinja
