#include "weights/spm_merges.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

namespace tq {
namespace {

constexpr size_t kMaxPieceBytes = 1024;

struct Candidate {
  std::string_view left;
  std::string_view right;
  size_t left_id;
  size_t right_id;
  float score;
};

size_t NumChars(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::vector<Merge> DeriveSpmMerges(std::span<const std::string_view> pieces,
                                   std::span<const float> scores, const std::vector<bool>& usable) {
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (usable[i]) ids.emplace(pieces[i], i);
  }
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (!usable[i] || pieces[i].size() > kMaxPieceBytes) continue;
    const size_t first = candidates.size();
    for (size_t cut = 1; cut < pieces[i].size(); ++cut) {
      const auto left = ids.find(pieces[i].substr(0, cut));
      if (left == ids.end()) continue;
      const auto right = ids.find(pieces[i].substr(cut));
      if (right == ids.end()) continue;
      candidates.push_back({left->first, right->first, left->second, right->second, scores[i]});
    }
    std::sort(candidates.begin() + static_cast<std::ptrdiff_t>(first), candidates.end(),
              [](const Candidate& a, const Candidate& b) {
                return std::pair(a.left_id, a.right_id) < std::pair(b.left_id, b.right_id);
              });
  }
  // Best score first; of equal ones the longer left part, then the longer right part.
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     if (a.score != b.score) return a.score > b.score;
                     const size_t a_left = NumChars(a.left);
                     const size_t b_left = NumChars(b.left);
                     if (a_left != b_left) return a_left > b_left;
                     return NumChars(a.right) > NumChars(b.right);
                   });
  std::vector<Merge> out;
  out.reserve(candidates.size());
  for (const Candidate& candidate : candidates) out.emplace_back(candidate.left, candidate.right);
  return out;
}

}  // namespace tq
