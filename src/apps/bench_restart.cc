#include "apps/bench_restart.h"

#include <chrono>
#include <filesystem>

#include <fmt/format.h>
#include <unistd.h>

#include "engine/engine.h"

namespace tq {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kAnswer = 16;
constexpr int64_t kNewMessage = 32;

double Since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    path_ = std::filesystem::temp_directory_path(error) /
            fmt::format("turboquant-restart-{}", ::getpid());
  }
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

struct Turn {
  double first_token_seconds = 0;
  double seconds = 0;
  int64_t cached_tokens = 0;
  std::vector<int32_t> answer;
};

Result<Turn> Ask(Engine& engine, const std::vector<int32_t>& prompt) {
  GenerateRequest request;
  request.prompt = prompt;
  request.max_tokens = kAnswer;
  Turn out;
  const Clock::time_point begin = Clock::now();
  TQ_ASSIGN_OR_RETURN(const auto stream, engine.Submit(std::move(request)));
  while (const auto id = stream->Next()) {
    if (out.answer.empty()) out.first_token_seconds = Since(begin);
    out.answer.push_back(*id);
  }
  out.seconds = Since(begin);
  out.cached_tokens = stream->stats().cached_tokens;
  return out;
}

}  // namespace

Result<RestartTimes> MeasureRestart(const Model& model, Backend& backend, const KvSettings& kv,
                                    int64_t tokens, int64_t chunk) {
  const TemporaryFolder folder;
  EngineOptions options;
  options.max_context = tokens + 2 * kAnswer + kNewMessage;
  options.max_sequences = 1;
  options.prefill_chunk = chunk;
  options.kv = kv;
  options.disk_cache.folder = folder.path();
  options.disk_cache.content = "bench";
  std::vector<int32_t> prompt;
  uint32_t random = 1;
  const auto add = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      random = random * 1664525 + 1013904223;
      prompt.push_back(static_cast<int32_t>((random >> 8) % model.spec().vocab_size));
    }
  };
  add(tokens);
  RestartTimes out;
  out.tokens = tokens;
  TQ_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::Create(model, backend, options));
  TQ_ASSIGN_OR_RETURN(const Turn first, Ask(*engine, prompt));
  out.cold_seconds = first.first_token_seconds;
  out.turn_seconds = first.seconds;
  const Clock::time_point end = Clock::now();
  engine.reset();
  out.flush_seconds = Since(end);
  prompt.insert(prompt.end(), first.answer.begin(), first.answer.end());
  add(kNewMessage);
  TQ_ASSIGN_OR_RETURN(engine, Engine::Create(model, backend, options));
  TQ_ASSIGN_OR_RETURN(const Turn next, Ask(*engine, prompt));
  out.warm_seconds = next.first_token_seconds;
  out.cached_tokens = next.cached_tokens;
  out.prompt_tokens = static_cast<int64_t>(prompt.size());
  out.bytes_on_disk = engine->stats().disk_bytes;
  return out;
}

}  // namespace tq
