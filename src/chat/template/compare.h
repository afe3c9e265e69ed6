// Equality, order, membership, truth and length, as Python defines them.
#pragma once

#include "chat/template/value.h"

namespace tq::jinja {

enum class CompareOp : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };

// Of dict keys (scalars, strings, tuples of those).
bool KeysEqual(const Value& a, const Value& b);
// Errors: "unhashable type".
Result<uint64_t> HashKey(Runtime& rt, const Value& key);

Result<bool> Equal(Runtime& rt, const Value& a, const Value& b);
Result<bool> Compare(Runtime& rt, CompareOp op, const Value& a, const Value& b);
Result<bool> Contains(Runtime& rt, const Value& container, const Value& item);

bool Truthy(const Value& value);
// Errors: "object of type ... has no len()".
Result<int64_t> Length(Runtime& rt, const Value& value);
// The items of any iterable; a generator is used up. Errors: "... object is not iterable".
Result<std::vector<Value>> Iterate(Runtime& rt, const Value& value);
bool IsIterable(const Value& value);
// Reads of a generator start here.
Status FillGenerator(Runtime& rt, GeneratorObject& generator);

// Stable. less(a, b) may fail. Requires: less is a weak order.
using LessFn = std::function<Result<bool>(size_t, size_t)>;
Result<std::vector<size_t>> SortedOrder(Runtime& rt, size_t count, const LessFn& less);

}  // namespace tq::jinja
