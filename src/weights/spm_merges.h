// Merges of a SentencePiece BPE vocabulary, which stores scores instead: a merge for every way to
// cut a piece into two pieces, best score first, as Hugging Face's conversion orders them.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace tq {

using Merge = std::pair<std::string_view, std::string_view>;

// pieces[i] has scores[i] and takes part when usable[i]. Views point into `pieces`' texts. Pieces
// longer than 1024 bytes are not cut: the cost would grow with the square of a lying length.
std::vector<Merge> DeriveSpmMerges(std::span<const std::string_view> pieces,
                                   std::span<const float> scores, const std::vector<bool>& usable);

}  // namespace tq
