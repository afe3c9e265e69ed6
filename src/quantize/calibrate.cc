#include "quantize/calibrate.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "base/threads.h"
#include "quantize/hessian_file.h"
#include "quantize/input_sums.h"

namespace tq {
namespace {

constexpr int64_t kLogitsBytes = int64_t{256} << 20;

using Input = HessianWriter::Input;

// Notes which inputs there are. Rows that no group fits are never quantized.
class InputLister : public InputObserver {
 public:
  void OnInput(std::span<const std::string_view> names, const float*, int64_t,
               int64_t cols) override {
    if (cols % InputSums::kPanel != 0) return;
    Input input;
    for (const std::string_view name : names) input.matrices.emplace_back(name);
    input.cols = cols;
    inputs.push_back(std::move(input));
  }
  std::vector<Input> inputs;
};

// Adds x x^T of every token to the sums of the inputs that it was made for.
class Accumulator : public InputObserver {
 public:
  Accumulator(std::span<const Input> inputs, ThreadPool& pool) : pool_(pool) {
    for (const Input& input : inputs) sums_.try_emplace(input.name(), input.cols);
  }

  void OnInput(std::span<const std::string_view> names, const float* x, int64_t num_tokens,
               int64_t) override {
    const auto found = sums_.find(*names.begin());
    if (found != sums_.end()) found->second.Add(x, num_tokens, pool_);
  }

  const InputSums& Finished(const Input& input) {
    InputSums& sums = sums_.find(input.name())->second;
    sums.Finish();
    return sums;
  }

 private:
  ThreadPool& pool_;
  std::map<std::string, InputSums, std::less<>> sums_;
};

// One sequence at a time through the model.
class Runner {
 public:
  static Result<std::unique_ptr<Runner>> Create(const Model& model, Backend& backend,
                                                const CalibrateOptions& options) {
    const int64_t context = model.spec().max_position_embeddings;
    if (options.seq_len < 1 || options.seq_len > context) {
      return InvalidArgument(
          fmt::format("samples: expected 1..{} tokens (the model's context), found {}", context,
                      options.seq_len));
    }
    TQ_ASSIGN_OR_RETURN(KvCache cache, KvCache::Create(model.Needs(options.kv),
                                                       KvCache::PagesFor(options.seq_len), 1));
    return std::unique_ptr<Runner>(new Runner(model, backend, std::move(cache)));
  }

  // with_head: every token reaches the head. Requires: ids are below the vocabulary's size.
  void Run(std::span<const int32_t> ids, bool with_head, InputObserver& observer) {
    const auto total = static_cast<int64_t>(ids.size());
    const int64_t vocab = model_.spec().vocab_size;
    const int64_t head_tokens =
        std::max<int64_t>(1, kLogitsBytes / (vocab * static_cast<int64_t>(sizeof(float))));
    const int64_t step_tokens = with_head ? std::min(total, head_tokens) : total;
    for (int64_t begin = 0; begin < total; begin += step_tokens) {
      StepPlan plan;
      const int64_t n = std::min(step_tokens, total - begin);
      for (int64_t i = 0; i < n; ++i) {
        plan.ids.push_back(ids[static_cast<size_t>(begin + i)]);
        plan.positions.push_back(static_cast<int32_t>(begin + i));
        if (with_head) plan.logits_tokens.push_back(static_cast<int32_t>(i));
      }
      plan.sequences.push_back(
          {.first_token = 0, .num_tokens = n, .start_position = begin, .pages = pages_});
      logits_.resize(plan.logits_tokens.size() * static_cast<size_t>(vocab));
      scratch_.Reset();
      StepContext step{backend_, scratch_, plan, nullptr, {}, &observer};
      model_.Forward(step, cache_, logits_.data());
    }
  }

 private:
  Runner(const Model& model, Backend& backend, KvCache cache)
      : model_(model), backend_(backend), cache_(std::move(cache)) {
    TQ_CHECK(cache_.Allocate(cache_.num_pages(), pages_));
  }

  const Model& model_;
  Backend& backend_;
  KvCache cache_;
  std::vector<int32_t> pages_;
  Scratch scratch_;
  std::vector<float> logits_;
};

Status CheckIds(const std::vector<std::vector<int32_t>>& texts, int64_t vocab_size) {
  for (const std::vector<int32_t>& text : texts) {
    for (const int32_t id : text) {
      if (id >= 0 && id < vocab_size) continue;
      return InvalidArgument(
          fmt::format("expected token ids in [0, {}), found {}", vocab_size, id));
    }
  }
  return Status::Ok();
}

using Samples = std::vector<std::span<const int32_t>>;

// The texts take turns until there are enough samples or no text has another one.
Samples TakeSamples(const std::vector<std::vector<int32_t>>& texts,
                    const CalibrateOptions& options) {
  std::vector<int64_t> counts(texts.size());
  int64_t total = 0;
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < texts.size() && total < options.num_samples; ++i) {
      if ((counts[i] + 1) * options.seq_len > static_cast<int64_t>(texts[i].size())) continue;
      ++counts[i];
      ++total;
      more = true;
    }
  }
  Samples samples;
  for (size_t i = 0; i < texts.size(); ++i) {
    const int64_t room = static_cast<int64_t>(texts[i].size()) - options.seq_len;
    for (int64_t k = 0; k < counts[i]; ++k) {
      const int64_t at = counts[i] == 1 ? 0 : room * k / (counts[i] - 1);
      samples.push_back(std::span(texts[i]).subspan(static_cast<size_t>(at),
                                                    static_cast<size_t>(options.seq_len)));
    }
  }
  return samples;
}

// Neighbouring inputs whose sums fit into the memory together.
Result<std::vector<std::span<const Input>>> PlanPasses(std::span<const Input> inputs,
                                                       int64_t memory_bytes) {
  std::vector<std::span<const Input>> passes;
  size_t begin = 0;
  int64_t used = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t bytes = inputs[i].bytes();
    if (bytes > memory_bytes) {
      return OutOfMemory(fmt::format(
          "calibration of {} columns ({}): expected at most {:.3f} GB, found {:.3f} GB: "
          "raise the limit",
          inputs[i].cols, inputs[i].name(), static_cast<double>(memory_bytes) * 1e-9,
          static_cast<double>(bytes) * 1e-9));
    }
    if (used + bytes > memory_bytes) {
      passes.push_back(inputs.subspan(begin, i - begin));
      begin = i;
      used = 0;
    }
    used += bytes;
  }
  if (begin < inputs.size()) passes.push_back(inputs.subspan(begin));
  return passes;
}

std::string StoppedText(const HessianWriter& writer, const std::string& path, size_t num_inputs) {
  if (writer.num_done() == 0) return "calibration stopped: nothing was written";
  return fmt::format(
      "calibration stopped: {} of {} inputs are kept in {}.partial: the same command continues",
      writer.num_done(), num_inputs, path);
}

}  // namespace

Result<CalibrateReport> Calibrate(const WeightSource& source, const Model& model, Backend& backend,
                                  const std::vector<std::vector<int32_t>>& texts,
                                  const std::string& path, const CalibrateOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<Runner> runner,
                      Runner::Create(model, backend, options));
  TQ_RETURN_IF_ERROR(CheckIds(texts, model.spec().vocab_size));
  const Samples samples = TakeSamples(texts, options);
  if (samples.empty()) {
    return InvalidArgument(
        fmt::format("expected a text of at least {} tokens (one sample), found none: take a longer "
                    "text or shorter samples",
                    options.seq_len));
  }
  InputLister lister;
  runner->Run(samples.front().first(1), true, lister);
  if (lister.inputs.empty()) {
    return InvalidArgument(source.path() +
                           ": no matrix can be quantized: there is nothing to calibrate");
  }
  for (const Input& input : lister.inputs) {  // before anything is written
    TQ_RETURN_IF_ERROR(PlanPasses({&input, 1}, options.memory_bytes).status());
  }
  TQ_ASSIGN_OR_RETURN(
      const std::unique_ptr<HessianWriter> writer,
      HessianWriter::Create(path, lister.inputs, samples, CheckpointFingerprint(source),
                            backend.activations() == ActivationMode::kF32 ? "f32" : "int8"));
  const std::span<const Input> rest = std::span(lister.inputs).subspan(writer->num_done());
  TQ_ASSIGN_OR_RETURN(const auto passes, PlanPasses(rest, options.memory_bytes));

  CalibrateReport report;
  report.samples = static_cast<int64_t>(samples.size());
  report.tokens = report.samples * options.seq_len;
  report.inputs = static_cast<int64_t>(lister.inputs.size());
  report.continued_inputs = static_cast<int64_t>(writer->num_done());
  report.passes = static_cast<int64_t>(passes.size());
  ThreadPool pool(options.num_threads);
  int64_t done = 0;
  for (const std::span<const Input> inputs : passes) {
    const bool with_head = inputs.back().name() == "lm_head";
    Accumulator accumulator(inputs, pool);
    for (const std::span<const int32_t> sample : samples) {
      if (options.cancel != nullptr && options.cancel->load()) {
        return Cancelled(StoppedText(*writer, path, lister.inputs.size()));
      }
      runner->Run(sample, with_head, accumulator);
      done += options.seq_len;
      if (options.progress) options.progress(done, report.tokens * report.passes);
    }
    for (const Input& input : inputs) {
      const InputSums& sums = accumulator.Finished(input);
      TQ_RETURN_IF_ERROR(writer->Append(input, sums.squares(), sums.rows()));
    }
    writer->Keep();
  }
  for (const Input& input : lister.inputs) report.file_bytes += input.bytes();
  TQ_RETURN_IF_ERROR(writer->Finish());
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace tq
