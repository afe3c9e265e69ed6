#include "quantize/model_card.h"

#include <filesystem>
#include <system_error>

#include "quantize/recipe.h"

namespace tq {
namespace {

// With its fences; empty when there is none.
std::string_view FrontMatter(std::string_view card) {
  constexpr std::string_view kFence = "---\n";
  if (!card.starts_with(kFence)) return {};
  const size_t end = card.find("\n---\n", kFence.size() - 1);
  return end == std::string_view::npos ? std::string_view() : card.substr(0, end + 5);
}

}  // namespace

std::string SourceName(const std::string& path) {
  std::error_code error;
  std::filesystem::path full = std::filesystem::absolute(path, error).lexically_normal();
  if (!full.has_filename()) full = full.parent_path();
  if (full.extension() == ".gguf") full.replace_extension();
  return full.filename().string();
}

std::string ModelCard(std::string_view source_card, const std::string& source_name,
                      const QuantizeSettings& settings) {
  std::string card(FrontMatter(source_card));
  card += "# " + source_name + "-" + RecipeName(settings) + "\n\n";
  card += "TurboQuant weights of " + source_name +
          ", written by turboquant.cpp; the terms of use are those of the original. config.json "
          "says under `quantization` how the matrices are stored.\n\n";
  card += "```\nturboquant generate --model . --prompt \"Why is the sky blue?\"\n```\n";
  return card;
}

}  // namespace tq
