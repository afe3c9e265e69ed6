// Values of the template language, with Python's meaning. A Value is small and copied freely; what
// it points to is immutable, but for namespaces, loops and iterators. Nesting is bounded by
// kMaxValueDepth, so that printing, comparing and freeing may recurse.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace tq::jinja {

class Runtime;
class Value;
struct Frame;
struct Function;

inline constexpr int kMaxValueDepth = 500;

enum class Kind : uint8_t {
  kMissing,  // internal: no value at all
  kUndefined,
  kNone,
  kBool,
  kInt,
  kBigInt,  // above the int64 range: carried, printed and compared, no arithmetic
  kFloat,
  kString,
  kList,
  kTuple,
  kDict,
  kView,  // dict.keys(), dict.values(), dict.items()
  kRange,
  kGenerator,  // what map, select, items ... return: read once
  kNamespace,
  kLoop,
  kCycler,
  kJoiner,
  kCallable,
};

// Live bytes of one rendering.
struct Meter {
  size_t live_bytes = 0;
};

struct Object {
  Object() = default;
  virtual ~Object() {
    if (meter != nullptr) meter->live_bytes -= charged_bytes;
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  Meter* meter = nullptr;  // null: part of a parsed template
  size_t charged_bytes = 0;
  int depth = 1;
};

struct StringObject;
struct ListObject;
struct DictObject;

class Value {
 public:
  Value() = default;
  Value(Kind kind, std::shared_ptr<Object> object) : kind_(kind), object_(std::move(object)) {}
  static Value None() { return Scalar(Kind::kNone, 0); }
  static Value Bool(bool value) { return Scalar(Kind::kBool, value ? 1 : 0); }
  static Value Int(int64_t value) { return Scalar(Kind::kInt, value); }
  static Value BigInt(uint64_t value) { return Scalar(Kind::kBigInt, static_cast<int64_t>(value)); }
  static Value Float(double value) {
    Value result;
    result.kind_ = Kind::kFloat;
    result.real_ = value;
    return result;
  }

  Kind kind() const { return kind_; }
  bool Is(Kind kind) const { return kind_ == kind; }
  bool IsMissing() const { return kind_ == Kind::kMissing; }
  bool IsUndefined() const { return kind_ == Kind::kUndefined; }
  bool IsString() const { return kind_ == Kind::kString; }
  bool IsIntegral() const { return kind_ == Kind::kInt || kind_ == Kind::kBool; }
  bool IsNumber() const { return IsIntegral() || kind_ == Kind::kFloat || kind_ == Kind::kBigInt; }

  int64_t integer() const { return int_; }  // kBool, kInt
  uint64_t big_integer() const { return static_cast<uint64_t>(int_); }
  double real() const { return real_; }
  // Any number but kBigInt's rounding.
  double AsDouble() const {
    if (kind_ == Kind::kFloat) return real_;
    return kind_ == Kind::kBigInt ? static_cast<double>(big_integer()) : static_cast<double>(int_);
  }
  std::string_view text() const;            // kString
  const std::vector<Value>& items() const;  // kList, kTuple
  const DictObject& dict() const;           // kDict
  template <typename T>
  T& As() const {
    return static_cast<T&>(*object_);
  }
  const Object* object() const { return object_.get(); }
  std::shared_ptr<Object> shared() const { return object_; }
  int depth() const { return object_ == nullptr ? 0 : object_->depth; }

 private:
  static Value Scalar(Kind kind, int64_t value) {
    Value result;
    result.kind_ = kind;
    result.int_ = value;
    return result;
  }
  Kind kind_ = Kind::kMissing;
  union {
    int64_t int_ = 0;
    double real_;
  };
  std::shared_ptr<Object> object_;
};

struct UndefinedObject : Object {
  std::string message;
};

struct StringObject : Object {
  std::string text;
  size_t length = 0;    // code points
  bool markup = false;  // made by |safe or |escape: escapes what is added to it
};

struct ListObject : Object {  // kList, kTuple
  std::vector<Value> items;
  bool is_group = false;  // an item of |groupby: a tuple with .grouper and .list
};

// Insertion order and lookup by Python's key equality (1 == 1.0 == true).
struct DictObject : Object {
  std::vector<std::pair<Value, Value>> entries;
  std::vector<int32_t> table;  // open addressing into entries; empty while there are few
  std::vector<uint64_t> hashes;

  const Value* Find(std::string_view key) const;
  const Value* Find(const Value& key, uint64_t hash) const;
  void Set(Value key, uint64_t hash, Value value);

 private:
  int64_t FindIndex(const Value& key, uint64_t hash) const;
  void Rebuild();
};

struct ViewObject : Object {
  enum class What { kKeys, kValues, kItems };
  Value dict;
  What what = What::kKeys;
};

struct RangeObject : Object {
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1;
  int64_t length = 0;
};
// Unsigned inside: the product may leave the int64 range where the sum does not.
inline int64_t RangeAt(const RangeObject& range, int64_t i) {
  return static_cast<int64_t>(static_cast<uint64_t>(range.start) +
                              static_cast<uint64_t>(i) * static_cast<uint64_t>(range.step));
}

struct GeneratorObject : Object {
  // Computes all items; called at the first use, as Python's generators start then.
  std::function<Status(Runtime&, std::vector<Value>*)> fill;
  bool filled = false;
  std::vector<Value> items;
  size_t position = 0;
};

// Owned by the rendering, not by its values: namespaces can refer to each other in circles.
struct NamespaceObject : Object {
  DictObject attributes;
};

struct CyclerObject : Object {
  std::vector<Value> items;
  size_t position = 0;
};

struct JoinerObject : Object {
  Value separator;
  bool used = false;
};

// What a for loop reads from.
class ItemSource {
 public:
  virtual ~ItemSource() = default;
  // False at the end.
  virtual Result<bool> Next(Runtime& rt, Value* item) = 0;
};

// The variable `loop`.
struct LoopObject : Object {
  std::shared_ptr<ItemSource> source;  // null once the loop has ended
  std::vector<Value> ahead;            // items read before their turn, first one last
  int64_t length = -1;                 // -1: not known yet
  int64_t index0 = -1;
  int64_t depth0 = 0;
  Value current;
  Value previous;
  Value last_changed;
  std::function<Result<Value>(const Value& iterable, int64_t depth)> recurse;  // recursive loops

  Result<bool> Advance(Runtime& rt);
  Result<Value> Peek(Runtime& rt);  // kMissing at the end
  Result<int64_t> Length(Runtime& rt);
  void Close();

 private:
  Result<bool> Pull(Runtime& rt, Value* item);
};

struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

struct CallableObject : Object {
  std::string name;
  Value self;  // of a bound method
  // Native functions; null for macros.
  Result<Value> (*native)(Runtime& rt, const Value& self, const Args& args) = nullptr;
  const Function* macro = nullptr;
  Frame* closure = nullptr;
};

// The hash of a key that is a text.
uint64_t HashText(std::string_view text);

}  // namespace tq::jinja
