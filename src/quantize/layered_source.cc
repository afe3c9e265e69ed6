#include "quantize/layered_source.h"

#include <algorithm>
#include <set>

namespace tq {
namespace {

// What a matrix consists of beside its bias: path.weight, path.scales, ...
bool IsPart(const SourceTensor& tensor, const std::set<std::string, std::less<>>& paths) {
  const size_t dot = tensor.name.rfind('.');
  if (dot == std::string::npos) return false;
  const std::string_view name = tensor.name;
  return name.substr(dot) != ".bias" && paths.contains(name.substr(0, dot));
}

}  // namespace

LayeredSource::LayeredSource(const WeightSource& base, const WeightSource& top,
                             const std::vector<std::string>& paths)
    : base_(base), top_(top) {
  const std::set<std::string, std::less<>> replaced(paths.begin(), paths.end());
  for (const SourceTensor& tensor : base.tensors()) {
    if (!IsPart(tensor, replaced)) tensors_.push_back(tensor);
  }
  for (const SourceTensor& tensor : top.tensors()) {
    if (IsPart(tensor, replaced)) tensors_.push_back(tensor);
  }
  std::sort(tensors_.begin(), tensors_.end(),
            [](const SourceTensor& a, const SourceTensor& b) { return a.name < b.name; });
}

void LayeredSource::DropPages(const SourceTensor& tensor) const {
  const SourceTensor* own = top_.Find(tensor.name);
  if (own != nullptr && own->bytes.data() == tensor.bytes.data()) {
    top_.DropPages(*own);
  } else {
    base_.DropPages(tensor);
  }
}

}  // namespace tq
