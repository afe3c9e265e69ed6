// Length and items of values, and sorting them.
#include <algorithm>
#include <numeric>

#include "chat/template/compare.h"
#include "chat/template/print.h"
#include "chat/template/runtime.h"
#include "chat/template/text.h"

namespace tq::jinja {

Result<int64_t> Length(Runtime& rt, const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return int64_t{0};
    case Kind::kString:
      return static_cast<int64_t>(value.As<StringObject>().length);
    case Kind::kList:
    case Kind::kTuple:
      return static_cast<int64_t>(value.items().size());
    case Kind::kDict:
      return static_cast<int64_t>(value.dict().entries.size());
    case Kind::kView:
      return static_cast<int64_t>(value.As<ViewObject>().dict.dict().entries.size());
    case Kind::kRange:
      return value.As<RangeObject>().length;
    case Kind::kLoop:
      return value.As<LoopObject>().Length(rt);
    default:
      return rt.Fail("object of type '{}' has no len()", TypeName(value));
  }
}

bool IsIterable(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kView:
    case Kind::kRange:
    case Kind::kGenerator:
    case Kind::kLoop:
      return true;
    default:
      return false;
  }
}

Status FillGenerator(Runtime& rt, GeneratorObject& generator) {
  if (generator.filled) return Status::Ok();
  generator.filled = true;
  TQ_RETURN_IF_ERROR(generator.fill(rt, &generator.items));
  generator.fill = nullptr;
  int depth = generator.depth;
  for (const Value& item : generator.items) depth = std::max(depth, item.depth() + 1);
  generator.depth = depth;
  rt.Charge(&generator, generator.items.capacity() * sizeof(Value));
  return rt.Step();
}

Result<std::vector<Value>> Iterate(Runtime& rt, const Value& value) {
  std::vector<Value> items;
  switch (value.kind()) {
    case Kind::kUndefined:
      break;
    case Kind::kList:
    case Kind::kTuple:
      items = value.items();
      break;
    case Kind::kString: {
      const std::string_view text = value.text();
      TQ_RETURN_IF_ERROR(rt.CheckItems(value.As<StringObject>().length));
      for (size_t i = 0; i < text.size();) {
        TQ_RETURN_IF_ERROR(rt.Step());
        const size_t begin = i;
        NextCodePoint(text, &i);
        items.push_back(rt.String(std::string(text.substr(begin, i - begin))));
      }
      break;
    }
    case Kind::kDict:
      for (const auto& [key, unused] : value.dict().entries) items.push_back(key);
      break;
    case Kind::kView: {
      const auto& view = value.As<ViewObject>();
      for (const auto& [key, entry] : view.dict.dict().entries) {
        switch (view.what) {
          case ViewObject::What::kKeys:
            items.push_back(key);
            break;
          case ViewObject::What::kValues:
            items.push_back(entry);
            break;
          case ViewObject::What::kItems:
            items.push_back(rt.Tuple({key, entry}));
            break;
        }
      }
      break;
    }
    case Kind::kRange: {
      const auto& range = value.As<RangeObject>();
      TQ_RETURN_IF_ERROR(rt.CheckItems(static_cast<size_t>(range.length)));
      for (int64_t i = 0; i < range.length; ++i) {
        items.push_back(Value::Int(RangeAt(range, i)));
      }
      break;
    }
    case Kind::kGenerator: {
      auto& generator = value.As<GeneratorObject>();
      TQ_RETURN_IF_ERROR(FillGenerator(rt, generator));
      items.assign(generator.items.begin() + static_cast<int64_t>(generator.position),
                   generator.items.end());
      generator.position = generator.items.size();
      break;
    }
    case Kind::kLoop:
      return rt.Fail("iterating over the loop variable is not supported");
    default:
      return rt.Fail("'{}' object is not iterable", TypeName(value));
  }
  TQ_RETURN_IF_ERROR(rt.Step(1 + static_cast<int64_t>(items.size())));
  return items;
}

Result<std::vector<size_t>> SortedOrder(Runtime& rt, size_t count, const LessFn& less) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<size_t> merged(count);
  // Bottom-up merge sort: std::sort must not see a comparison that fails.
  for (size_t width = 1; width < count; width *= 2) {
    for (size_t begin = 0; begin < count; begin += 2 * width) {
      const size_t middle = std::min(begin + width, count);
      const size_t end = std::min(begin + 2 * width, count);
      size_t left = begin;
      size_t right = middle;
      for (size_t out = begin; out < end; ++out) {
        bool take_right = left == middle;
        if (!take_right && right < end) {
          TQ_RETURN_IF_ERROR(rt.Step());
          TQ_ASSIGN_OR_RETURN(take_right, less(order[right], order[left]));
        }
        merged[out] = take_right ? order[right++] : order[left++];
      }
    }
    order.swap(merged);
  }
  return order;
}

}  // namespace tq::jinja
