#include "weights/naming/canonical.h"

#include <algorithm>

#include "weights/naming/aliases.h"
#include "weights/naming/fused.h"
#include "weights/naming/stacks.h"
#include "weights/quote.h"

namespace tq {
namespace {

// The largest published models have a million after their experts are taken apart.
constexpr size_t kMaxTensors = 4'000'000;

// A depthwise convolution is [channels, 1, taps] or [channels, taps, 1]: the same bytes.
Status FlattenConvolution(SourceTensor& tensor) {
  Shape& shape = tensor.shape;
  if (!tensor.name.ends_with("conv1d.weight") || shape.size() != 3) return Status::Ok();
  if (shape[1] != 1 && shape[2] != 1) {
    return Corrupt("expected a depthwise convolution [channels, 1, taps], found " +
                   ShapeString(shape));
  }
  shape = {shape[0], shape[1] * shape[2]};
  return Status::Ok();
}

struct Named {
  SourceTensor tensor;
  std::string stored;
};

class Canonicalizer {
 public:
  explicit Canonicalizer(const std::string& where) : where_(where) {}

  Status Run(std::string_view model_type, std::vector<SourceTensor>& tensors) {
    for (SourceTensor& tensor : tensors) {
      Named named{std::move(tensor), ""};
      named.stored = named.tensor.name;
      named.tensor.name = CanonicalName(named.stored, model_type);
      renamed_.push_back(std::move(named));
    }
    tensors.clear();
    std::sort(renamed_.begin(), renamed_.end(),
              [](const Named& a, const Named& b) { return a.tensor.name < b.tensor.name; });
    for (Named& named : renamed_) {
      const size_t first = tensors.size();
      TQ_RETURN_IF_ERROR(
          Expand(named.tensor, tensors).WithContext(where_ + ": tensor " + Quoted(named.stored)));
      if (tensors.size() > kMaxTensors) {
        return Corrupt(where_ + ": expected at most " + std::to_string(kMaxTensors) +
                       " matrices, found more");
      }
      origin_.insert(origin_.end(), tensors.size() - first, &named.stored);
    }
    return Sort(tensors);
  }

 private:
  const SourceTensor* Find(std::string_view name) const {
    const auto it = std::lower_bound(
        renamed_.begin(), renamed_.end(), name,
        [](const Named& named, std::string_view n) { return named.tensor.name < n; });
    return it != renamed_.end() && it->tensor.name == name ? &it->tensor : nullptr;
  }

  Status Expand(SourceTensor& tensor, std::vector<SourceTensor>& out) const {
    if (IsTowerTensor(tensor.name)) {
      out.push_back(tensor);
      return Status::Ok();
    }
    TQ_RETURN_IF_ERROR(FlattenConvolution(tensor));
    const TensorLookup find = [this](std::string_view name) { return Find(name); };
    std::vector<SourceTensor> parts;
    TQ_RETURN_IF_ERROR(AppendFusedParts(tensor, find, parts));
    for (const SourceTensor& part : parts) {
      TQ_RETURN_IF_ERROR(AppendStackItems(part, find, out));
    }
    return Status::Ok();
  }

  Status Sort(std::vector<SourceTensor>& tensors) const {
    std::vector<size_t> order(tensors.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return tensors[a].name < tensors[b].name; });
    std::vector<SourceTensor> sorted;
    sorted.reserve(tensors.size());
    for (size_t i = 0; i < order.size(); ++i) {
      if (i > 0 && sorted.back().name == tensors[order[i]].name) {
        return Corrupt(where_ + ": tensors " + Quoted(*origin_[order[i - 1]]) + " and " +
                       Quoted(*origin_[order[i]]) + " are both " + Quoted(sorted.back().name) +
                       ": expected one of them");
      }
      sorted.push_back(std::move(tensors[order[i]]));
    }
    tensors = std::move(sorted);
    return Status::Ok();
  }

  const std::string& where_;
  std::vector<Named> renamed_;              // sorted by canonical name
  std::vector<const std::string*> origin_;  // stored name of each part
};

}  // namespace

Status CanonicalizeTensors(std::string_view model_type, const std::string& where,
                           std::vector<SourceTensor>& tensors) {
  return Canonicalizer(where).Run(model_type, tensors);
}

}  // namespace tq
