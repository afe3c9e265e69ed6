// The smallest program over the public API: example_generate MODEL PROMPT
#include <cstdio>
#include <string_view>

#include "turboquant/turboquant.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s MODEL PROMPT\n", argv[0]);
    return 2;
  }
  const auto model = turboquant::Model::Load(argv[1]);
  if (!model) {
    std::fprintf(stderr, "error: %s\n", model.error().c_str());
    return 1;
  }
  const auto answer = (*model)->Generate(argv[2], {.max_tokens = 128}, [](std::string_view piece) {
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    return std::fflush(stdout) == 0;
  });
  if (!answer) {
    std::fprintf(stderr, "error: %s\n", answer.error().c_str());
    return 1;
  }
  std::fprintf(stderr, "\n%zu tokens\n", answer->ids.size());
  return 0;
}
