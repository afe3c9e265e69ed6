// Time of one token's sampling over a large vocabulary, on a flat and on a peaked distribution.
// usage: sampler_bench [vocabulary]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "sampling/sampler.h"

namespace tq {
namespace {

struct Named {
  const char* name;
  SamplingParams params;
  int num_logprobs = -1;
};

std::vector<Named> Cases() {
  SamplingParams hot;
  hot.temperature = 0.8f;
  std::vector<Named> cases = {{"greedy", {}}, {"temperature", hot}};
  const auto add = [&](const char* name, auto change) {
    SamplingParams params = hot;
    change(params);
    cases.push_back({name, params});
  };
  add("top_k 40", [](SamplingParams& p) { p.top_k = 40; });
  add("top_p 0.95", [](SamplingParams& p) { p.top_p = 0.95f; });
  add("min_p 0.05", [](SamplingParams& p) { p.min_p = 0.05f; });
  add("typical_p 0.9", [](SamplingParams& p) { p.typical_p = 0.9f; });
  add("xtc 0.1", [](SamplingParams& p) { p.xtc_probability = 1.0f; });
  add("penalties", [](SamplingParams& p) {
    p.repetition_penalty = 1.1f;
    p.repetition_context = 1 << 20;
    p.presence_penalty = 0.5f;
    p.frequency_penalty = 0.5f;
    p.penalize_prompt = true;
  });
  add("dry", [](SamplingParams& p) { p.dry_multiplier = 0.8f; });
  add("all of them", [](SamplingParams& p) {
    p.top_k = 50000;
    p.top_p = 0.95f;
    p.min_p = 0.01f;
    p.typical_p = 0.95f;
    p.xtc_probability = 1.0f;
    p.repetition_penalty = 1.1f;
    p.frequency_penalty = 0.5f;
    p.dry_multiplier = 0.8f;
  });
  cases.push_back({"greedy, 20 logprobs", {}, 20});
  return cases;
}

// Median time in ms.
double Time(const Named& named, const std::vector<float>& logits,
            const std::vector<int32_t>& history) {
  constexpr int kRuns = 41;
  const Sampler sampler(named.params);
  SamplerScratch scratch;
  scratch.Reserve(logits.size(), history.size());
  std::vector<double> times;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<float> copy = logits;
    SamplerCall call;
    call.history = history;
    call.position = run;
    call.num_logprobs = named.num_logprobs;
    const auto begin = std::chrono::steady_clock::now();
    const SampledToken token = sampler.Sample(copy, call, scratch);
    const auto end = std::chrono::steady_clock::now();
    if (token.id < 0) std::abort();
    times.push_back(std::chrono::duration<double, std::milli>(end - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return times[kRuns / 2];
}

int Main(int argc, char** argv) {
  const int vocab = argc > 1 ? std::atoi(argv[1]) : 151936;
  if (vocab < 2) {
    std::fprintf(stderr, "usage: sampler_bench [vocabulary]\n");
    return 2;
  }
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  std::vector<float> flat(static_cast<size_t>(vocab));
  for (float& logit : flat) logit = normal(random) * 0.5f;
  std::vector<float> peaked = flat;
  for (size_t i = 0; i < peaked.size(); i += 1000) peaked[i] += 12.0f;
  const std::vector<float> equal(flat.size(), 1.0f);
  std::vector<int32_t> history(8192);
  for (int32_t& id : history) id = static_cast<int32_t>(random() % 500);
  std::printf("vocabulary %d, history %zu, median ms of a token\n", vocab, history.size());
  std::printf("%-20s %8s %8s %8s\n", "", "flat", "peaked", "equal");
  for (const Named& named : Cases()) {
    std::printf("%-20s %8.3f %8.3f %8.3f\n", named.name, Time(named, flat, history),
                Time(named, peaked, history), Time(named, equal, history));
  }
  return 0;
}

}  // namespace
}  // namespace tq

int main(int argc, char** argv) { return tq::Main(argc, argv); }
