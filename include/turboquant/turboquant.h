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
  int64_t memory_bytes = 0;      // limit for weights, caches and workspace; 0: none
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
  uint64_t seed = 0;
  std::vector<std::string> stop = {};  // texts that end the answer; not part of it
  // Generate only:
  bool chat_template = true;          // use the checkpoint's template, when it has one
  std::string system = {};            // system message
  std::optional<bool> thinking = {};  // the template's enable_thinking
};

enum class FinishReason { kStop, kLength, kCancelled };

struct Generation {
  std::string text;
  std::vector<int32_t> ids;
  FinishReason finish_reason = FinishReason::kStop;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of them taken from the prefix cache, not computed
  double prefill_seconds = 0;
  double decode_seconds = 0;
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
