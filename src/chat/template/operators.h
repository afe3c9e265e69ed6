// Arithmetic, subscripts and attributes, as Python and Jinja's immutable sandbox define them.
#pragma once

#include "chat/template/ast.h"
#include "chat/template/value.h"

namespace tq::jinja {

// kind: kAdd ... kPower.
Result<Value> Arithmetic(Runtime& rt, ExprKind kind, const Value& a, const Value& b);
Result<Value> Negate(Runtime& rt, const Value& value);
Result<Value> Plus(Runtime& rt, const Value& value);

// object.name: a method or attribute of the type first, then an item of that name.
Result<Value> GetAttr(Runtime& rt, const Value& object, const Value& name);
// object[key]: an item first, then a method or attribute.
Result<Value> GetItem(Runtime& rt, const Value& object, const Value& key);
// kMissing when the type has no such attribute (items are not looked at).
Result<Value> FindAttribute(Runtime& rt, const Value& object, std::string_view name);
// object[start:stop:step]; kMissing or None bounds are left open.
Result<Value> Slice(Runtime& rt, const Value& object, const Value& start, const Value& stop,
                    const Value& step);
// Start and stop of a slice (step 1) within `length`, clamped as Python does.
Result<std::pair<int64_t, int64_t>> SliceBounds(Runtime& rt, int64_t length, const Value& start,
                                                const Value& stop);
// Something Python accepts as an index. Errors: "... cannot be interpreted as an integer".
Result<int64_t> ToIndex(Runtime& rt, const Value& value);

// text % arguments
Result<Value> FormatPercent(Runtime& rt, const Value& format, const Value& arguments);
// text.format(...)
Result<Value> FormatBraces(Runtime& rt, const Value& format, const Args& args);

// str(), but a text stays what it is (also marked as safe).
Result<Value> SoftStr(Runtime& rt, const Value& value);
// html-escaped, and marked so; text that is marked already stays.
Result<Value> Escaped(Runtime& rt, const Value& value);
// A text like `like`: safe when that one is.
Value TextLike(Runtime& rt, const Value& like, std::string text);

}  // namespace tq::jinja
