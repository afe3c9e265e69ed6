#include "chat/template/runtime.h"

#include <algorithm>

#include "chat/template/compare.h"
#include "chat/template/print.h"
#include "chat/template/text.h"

namespace tq::jinja {

Status Runtime::Fail(std::string_view message) const {
  return InvalidArgument(fmt::format("chat template line {}: {}", line_, message));
}

Status Runtime::FailUndefined(const Value& undefined) const {
  return Fail(undefined.As<UndefinedObject>().message);
}

Status Runtime::FailLimit(std::string_view what) const {
  return OutOfMemory(fmt::format("chat template line {}: {}", line_, what));
}

Status Runtime::StepFailed() const {
  if (too_deep_) {
    return FailLimit(fmt::format("a value is nested deeper than {} levels", kMaxValueDepth));
  }
  if (steps_ > limits_.max_steps) {
    return FailLimit(fmt::format("the template needs more than {} steps", limits_.max_steps));
  }
  return FailLimit(
      fmt::format("the values of the template need more than {} bytes", max_live_bytes()));
}

Status Runtime::CheckBytes(size_t num_bytes) const {
  if (num_bytes <= limits_.max_output_bytes) return Status::Ok();
  return FailLimit(
      fmt::format("the template makes a text of more than {} bytes", limits_.max_output_bytes));
}

Status Runtime::CheckItems(size_t num_items) const {
  if (num_items <= limits_.max_output_bytes / sizeof(Value)) return Status::Ok();
  return FailLimit(fmt::format("the template makes a sequence of {} items", num_items));
}

Value Runtime::String(std::string text, bool markup) {
  auto object = New<StringObject>(text.capacity(), 1);
  object->length = CodePointCount(text);
  object->text = std::move(text);
  object->markup = markup;
  return Value(Kind::kString, std::move(object));
}

Value Runtime::Sequence(Kind kind, std::vector<Value> items) {
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  auto object = New<ListObject>(items.capacity() * sizeof(Value), depth + 1);
  object->items = std::move(items);
  return Value(kind, std::move(object));
}

Value Runtime::Undefined(std::string message) {
  auto object = New<UndefinedObject>(message.capacity(), 1);
  object->message = std::move(message);
  return Value(Kind::kUndefined, std::move(object));
}

Value Runtime::UndefinedName(std::string_view name) {
  return Undefined(fmt::format("'{}' is undefined", name));
}

Value Runtime::UndefinedMember(const Value& object, const Value& name) {
  if (name.IsString()) {
    return Undefined(fmt::format("{} has no attribute '{}'", DescribeType(object), name.text()));
  }
  Result<std::string> text = Repr(*this, name);
  return Undefined(fmt::format("{} has no element {}", DescribeType(object),
                               text.ok() ? text.value() : std::string("of that name")));
}

Value Runtime::Namespace() {
  auto object = std::make_unique<NamespaceObject>();
  Charge(object.get(), sizeof(NamespaceObject) + sizeof(void*));
  NamespaceObject* raw = object.get();
  namespaces_.push_back(std::move(object));
  return Value(Kind::kNamespace, std::shared_ptr<Object>(std::shared_ptr<Object>(), raw));
}

Value Runtime::Range(int64_t start, int64_t stop, int64_t step) {
  auto object = New<RangeObject>(0, 1);
  object->start = start;
  object->stop = stop;
  object->step = step;
  // Unsigned: the distance may exceed the int64 range.
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  const bool empty = step > 0 ? start >= stop : start <= stop;
  const uint64_t distance = step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                                     : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
  const uint64_t length = empty ? 0 : (distance - 1) / stride + 1;
  object->length = static_cast<int64_t>(std::min<uint64_t>(length, INT64_MAX));
  return Value(Kind::kRange, std::move(object));
}

Value Runtime::View(Value dict, ViewObject::What what) {
  auto object = New<ViewObject>(0, dict.depth() + 1);
  object->dict = std::move(dict);
  object->what = what;
  return Value(Kind::kView, std::move(object));
}

Value Runtime::Generator(int source_depth,
                         std::function<Status(Runtime&, std::vector<Value>*)> fill) {
  auto object = New<GeneratorObject>(0, source_depth + 2);
  object->fill = std::move(fill);
  return Value(Kind::kGenerator, std::move(object));
}

Value Runtime::Method(std::string name, Value self,
                      Result<Value> (*native)(Runtime&, const Value&, const Args&)) {
  auto object = New<CallableObject>(0, self.depth() + 1);
  object->name = std::move(name);
  object->self = std::move(self);
  object->native = native;
  return Value(Kind::kCallable, std::move(object));
}

void DictBuilder::Set(std::string_view key, Value value) {
  const uint64_t hash = HashText(key);
  depth_ = std::max(depth_, value.depth() + 1);
  dict_->Set(rt_.String(std::string(key)), hash, std::move(value));
}

Status DictBuilder::Set(const Value& key, Value value) {
  TQ_ASSIGN_OR_RETURN(const uint64_t hash, HashKey(rt_, key));
  depth_ = std::max({depth_, value.depth() + 1, key.depth() + 1});
  dict_->Set(key, hash, std::move(value));
  return Status::Ok();
}

Value DictBuilder::Take() {
  // Charged through the usual door, which also checks the depth.
  auto object = rt_.New<DictObject>(
      dict_->entries.capacity() * (sizeof(std::pair<Value, Value>) + sizeof(uint64_t)) +
          dict_->table.capacity() * sizeof(int32_t),
      depth_);
  object->entries = std::move(dict_->entries);
  object->table = std::move(dict_->table);
  object->hashes = std::move(dict_->hashes);
  return Value(Kind::kDict, std::move(object));
}

}  // namespace tq::jinja
