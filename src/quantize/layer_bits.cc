#include "quantize/layer_bits.h"

#include <algorithm>
#include <initializer_list>

namespace tq {
namespace {

bool IsAttention(std::string_view segment) {
  return segment == "self_attn" || segment == "attention" || segment == "linear_attn";
}

bool IsMlp(std::string_view segment) { return segment == "mlp" || segment == "feed_forward"; }

template <typename Visit>
void ForEachSegment(std::string_view path, Visit visit) {
  while (!path.empty()) {
    const size_t dot = path.find('.');
    visit(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
}

Status CheckOneOf(const char* name, int value, std::initializer_list<int> allowed) {
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return Status::Ok();
  std::string list;
  for (const int item : allowed) list += (list.empty() ? "" : ", ") + std::to_string(item);
  return InvalidArgument(std::string(name) + ": expected one of " + list + ", found " +
                         std::to_string(value));
}

}  // namespace

Status QuantizeSettings::Validate() const {
  TQ_RETURN_IF_ERROR(CheckOneOf("bits", bits, {2, 3, 4}));
  TQ_RETURN_IF_ERROR(CheckOneOf("group size", group_size, {32, 64, 128}));
  if (attn_bits) TQ_RETURN_IF_ERROR(CheckOneOf("attention bits", *attn_bits, {2, 3, 4}));
  if (mlp_bits) TQ_RETURN_IF_ERROR(CheckOneOf("mlp bits", *mlp_bits, {2, 3, 4}));
  if (mlp_group_size)
    TQ_RETURN_IF_ERROR(CheckOneOf("mlp group size", *mlp_group_size, {16, 32, 64, 128}));
  if (rotation != "hadamard" && rotation != "blockwise_hadamard" && rotation != "none") {
    return InvalidArgument("rotation: expected hadamard, blockwise_hadamard or none, found " +
                           rotation);
  }
  return Status::Ok();
}

int BitsForPath(const QuantizeSettings& settings, std::string_view path) {
  const auto own = settings.path_bits.find(std::string(path));
  if (own != settings.path_bits.end()) return own->second;
  int result = settings.bits;
  bool decided = false;
  bool shared = false;
  ForEachSegment(path, [&](std::string_view segment) {
    shared =
        shared || segment.starts_with("shared_expert") || segment.starts_with("routed_expert_");
  });
  ForEachSegment(path, [&](std::string_view segment) {
    if (decided) return;
    if (IsAttention(segment)) {
      result = settings.attn_bits.value_or(settings.bits);
      decided = true;
    } else if (IsMlp(segment)) {
      result = shared ? settings.bits : settings.mlp_bits.value_or(settings.bits);
      decided = true;
    }
  });
  return result;
}

int GroupForPath(const QuantizeSettings& settings, std::string_view path) {
  int result = settings.group_size;
  ForEachSegment(path, [&](std::string_view segment) {
    if (IsMlp(segment)) result = settings.mlp_group_size.value_or(settings.group_size);
  });
  return result;
}

bool IsQuantizable(int64_t rows, int64_t cols, int group) {
  return rows >= 32 && cols >= 32 && cols % group == 0;
}

}  // namespace tq
