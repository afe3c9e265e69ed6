// What constrained output costs a step: the time to fill the mask before each token of a document.
//
// mask_bench TOKENIZER_FOLDER DOCUMENT.json [SCHEMA.json]
//   The document must match the schema (any JSON object without one). One JSON line on stdout.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/file.h"
#include "grammar/grammar_compiler.h"
#include "tokenizer/tokenizer.h"

namespace {

using Clock = std::chrono::steady_clock;

double Microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

template <typename T>
T Need(tq::Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::fprintf(stderr, "error: %s\n", result.status().message().c_str());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: mask_bench TOKENIZER_FOLDER DOCUMENT.json [SCHEMA.json]\n");
    return 2;
  }
  const std::string folder = argv[1];
  const std::string config_path = folder + "/tokenizer_config.json";
  const std::string config =
      tq::FileExists(config_path) ? Need(tq::ReadTextFile(config_path)) : std::string();
  const auto tokenizer =
      Need(tq::Tokenizer::Load(Need(tq::ReadTextFile(folder + "/tokenizer.json")), config));
  const auto vocab_size = static_cast<int64_t>(tokenizer->vocab_size());
  const auto compiler = Need(tq::GrammarCompiler::Create(*tokenizer, vocab_size));
  tq::GrammarSpec spec;
  if (argc == 4) {
    spec.kind = tq::GrammarSpec::Kind::kJsonSchema;
    spec.text = Need(tq::ReadTextFile(argv[3]));
  }
  const std::vector<int32_t> ids = tokenizer->Encode(Need(tq::ReadTextFile(argv[2])), {});
  const auto begin = Clock::now();
  const auto constraint = Need(compiler->Compile(spec, {}, nullptr));
  const double compile = Microseconds(Clock::now() - begin);
  std::vector<uint32_t> mask(static_cast<size_t>((vocab_size + 31) / 32));
  std::vector<double> fills;
  double accepts = 0;
  for (const int32_t id : ids) {
    if (constraint->IsTerminated()) break;
    const auto start = Clock::now();
    constraint->FillMask(mask);
    const auto filled = Clock::now();
    fills.push_back(Microseconds(filled - start));
    if (((mask[static_cast<size_t>(id / 32)] >> (id % 32)) & 1) == 0) {
      std::fprintf(stderr, "error: token %zu of the document does not match the schema\n",
                   fills.size());
      return 1;
    }
    constraint->Accept(id);
    accepts += Microseconds(Clock::now() - filled);
  }
  if (fills.empty()) return 1;
  double sum = 0;
  for (const double fill : fills) sum += fill;
  std::sort(fills.begin(), fills.end());
  const auto count = static_cast<double>(fills.size());
  std::printf(
      "{\"vocabulary\": %lld, \"tokens\": %zu, \"compile_ms\": %.1f, \"fill_us_mean\": %.1f, "
      "\"fill_us_p99\": %.1f, \"fill_us_max\": %.1f, \"accept_us_mean\": %.1f}\n",
      static_cast<long long>(vocab_size), fills.size(), compile / 1e3, sum / count,
      fills[fills.size() * 99 / 100], fills.back(), accepts / count);
}
