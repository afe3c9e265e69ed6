// The C++ API of turboquant: load a checkpoint, turn text into ids and back, generate.
// Not for servers with many clients at once: Generate calls on one Model run one after another.
// No function throws; what can fail returns a Result. Strings are UTF-8.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace turboquant {

// A value, or one line that says what went wrong.
template <typename T>
class [[nodiscard]] Result {
 public:
  static Result Ok(T value) {
    Result result;
    result.value_ = std::move(value);
    return result;
  }
  static Result Error(std::string message) {
    Result result;
    result.error_ = std::move(message);
    return result;
  }
  explicit operator bool() const { return value_.has_value(); }
  const std::string& error() const { return error_; }  // "" when there is a value
  // Requires: there is a value.
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Result() = default;
  std::optional<T> value_;
  std::string error_;
};

struct LoadOptions {
  int threads = 0;               // 0: all CPUs of the process
  std::string backend = {};      // "cpu", "ref"; "" = best
  std::string isa = {};          // "avx2", "avx512", "neon", "scalar"; "" = best
  bool f32_activations = false;  // exact arithmetic on the stored weights; slower
  int64_t max_context = 0;       // tokens; 0: what the model was made for
  int max_sequences = 1;         // answers computed at once (GenerateMany)
  int64_t memory_bytes = 0;      // limit for weights, caches and workspace; 0: none
  // Format of the KV cache: "f16", "bf16", "int8", "tq4", or two of them, "int8/tq3", for keys and
  // values; "" = f16 (with f32_activations: f32). The first kv_min_tokens tokens, in pages of 64,
  // stay exact; kv_group_size (16, 32, 64, 128) values share a scale.
  std::string kv_type = {};
  int64_t kv_min_tokens = 0;
  int kv_group_size = 64;
  std::string disk_cache = {};   // folder that keeps what was computed for prompts; "": none
  int64_t disk_cache_bytes = 0;  // of that folder; 0: 10 GiB
  std::function<void(int64_t done_bytes, int64_t total_bytes)> progress = {};  // while loading
};

struct GenerateOptions {
  int64_t max_tokens = 512;  // -1: until the context is full
  int64_t min_tokens = 0;    // no end before this many tokens
  // Unset: the checkpoint's generation_config.json, else temperature 0.
  std::optional<float> temperature = {};
  std::optional<float> top_p = {};
  std::optional<int> top_k = {};
  std::optional<float> min_p = {};
  std::optional<float> repetition_penalty = {};
  std::optional<float> typical_p = {};
  float xtc_probability = 0;
  float xtc_threshold = 0.1f;
  int repetition_context = 256;  // last tokens (prompt included) that repetition_penalty sees
  float presence_penalty = 0;    // these two see the answer alone
  float frequency_penalty = 0;
  float dry_multiplier = 0;
  float dry_base = 1.75f;
  int dry_allowed_length = 2;
  int dry_context = -1;  // last tokens that DRY sees; -1: all
  std::vector<std::string> dry_breakers = {"\n", ":", "\"", "*"};
  std::string samplers = {};  // order: "top_k;typical_p;top_p;min_p;xtc;temperature"; "": this
  std::vector<std::pair<int32_t, float>> logit_bias = {};  // (id, added to its logit)
  std::vector<std::string> bad_words = {};                 // texts that may not come
  // Same seed, same answer, whatever else runs. Unset: another one each time.
  std::optional<uint64_t> seed = {};
  std::vector<std::string> stop = {};  // texts that end the answer; not part of it
  std::vector<int32_t> stop_ids = {};  // ids that end the answer; not part of it
  bool ignore_end = false;             // the model cannot end the answer
  int64_t loop_limit = 0;              // ends an answer that says a block so many times in a row
  // Unset: none. 0 to 20: log probabilities of the answer's tokens and of so many alternatives,
  // of the model itself: before bias, penalties, temperature and filters.
  std::optional<int> logprobs = {};
  // Generate only:
  bool chat_template = true;          // use the checkpoint's template, when it has one
  std::string system = {};            // system message
  std::optional<bool> thinking = {};  // the template's enable_thinking
};

enum class FinishReason { kStop, kLength, kLoop, kCancelled };

struct Logprob {
  int32_t id = 0;
  float logprob = 0;
};

struct TokenLogprobs {
  float logprob = 0;
  std::vector<Logprob> top = {};  // the most likely first
};

struct Generation {
  std::string text;
  std::vector<int32_t> ids;
  FinishReason finish_reason = FinishReason::kStop;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of them taken from the prefix cache, not computed
  double prefill_seconds = 0;
  double decode_seconds = 0;
  uint64_t seed = 0;                         // that was used
  std::vector<TokenLogprobs> logprobs = {};  // of ids, when they were asked for
};

// Gets every piece of text as it comes; returns false to stop the answer.
using OnText = std::function<bool(std::string_view text)>;

// A loaded checkpoint. Thread: one caller at a time.
class Model {
 public:
  // path: a folder in Hugging Face layout (TurboQuant or not), or a .gguf file.
  static Result<std::unique_ptr<Model>> Load(const std::string& path,
                                             const LoadOptions& options = {});
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // One user message, or plain text where there is no template.
  Result<Generation> Generate(const std::string& prompt, const GenerateOptions& options = {},
                              const OnText& on_text = {});
  // `count` answers to one prompt, which is computed once. The first has the seed of the options,
  // each other one its own. How many run at once: LoadOptions::max_sequences.
  Result<std::vector<Generation>> GenerateMany(const std::string& prompt, int count,
                                               const GenerateOptions& options = {});
  // Works without a tokenizer too; the text is then empty.
  Result<Generation> GenerateFromIds(const std::vector<int32_t>& prompt,
                                     const GenerateOptions& options = {},
                                     const OnText& on_text = {});

  // add_special: what the tokenizer puts around a text (BOS).
  Result<std::vector<int32_t>> Tokenize(std::string_view text, bool add_special = true) const;
  Result<std::string> Detokenize(const std::vector<int32_t>& ids, bool skip_special = true) const;

  int64_t vocab_size() const;
  int64_t max_context() const;

 private:
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// "0.1.0"
std::string_view Version();

}  // namespace turboquant
