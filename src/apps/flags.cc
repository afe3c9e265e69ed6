#include "apps/flags.h"

#include <charconv>
#include <cstdio>

#include <fmt/format.h>

#include "apps/hub_flags.h"
#include "apps/session_flags.h"
#include "tokenizer/unicode.h"

namespace tq {

void AddCommonFlags(CLI::App& app, CommonFlags& flags, Compute compute) {
  const auto group = [compute](Compute least) {
    return static_cast<int>(compute) <= static_cast<int>(least) ? "Common" : "";
  };
  app.add_option("--threads", flags.threads, "Threads; 0: all CPUs of the process")
      ->check(InRange(0, 1024))
      ->group(group(Compute::kThreads));
  app.add_option("--backend", flags.backend, "cpu, or ref (slow, plain, the same answers)")
      ->check(CLI::IsMember({"cpu", "ref"}))
      ->group(group(Compute::kModel));
  app.add_option("--isa", flags.isa, "Instruction set: one that `turboquant --version` lists")
      ->group(group(Compute::kModel));
  app.add_option("--activations", flags.activations,
                 "int8 (fast), or f32 (exact arithmetic on the stored weights)")
      ->check(CLI::IsMember({"int8", "f32"}))
      ->capture_default_str()
      ->group(group(Compute::kModel));
  app.add_option("--memory-gb", flags.memory_gb,
                 "Limit for weights, caches and workspace together, in GB (10^9 bytes)")
      ->check(InRange(1e-6, 1e6))
      ->group(group(Compute::kModel));
  app.add_flag("--json", flags.json, "Print one JSON object")->group("Common");
  CLI::Option* quiet =
      app.add_flag("--quiet", flags.quiet, "No progress, no statistics")->group("Common");
  app.add_flag("--verbose", flags.verbose, "Say more on stderr")->group("Common")->excludes(quiet);
}

void AddModelFlag(CLI::App& app, std::string& model) {
  app.add_option("--model", model,
                 "Checkpoint: a folder in Hugging Face layout, a .gguf file, or the ORG/NAME of a "
                 "repository that `turboquant pull` has downloaded")
      ->required()
      ->transform(ModelPath());
}

void SetExamples(CLI::App& app, std::initializer_list<std::string_view> lines) {
  std::string footer = "Examples:\n";
  for (const std::string_view line : lines) footer += fmt::format("  {}\n", line);
  app.footer(footer);
}

BackendOptions BackendOptionsOf(const CommonFlags& flags) {
  BackendOptions options;
  options.num_threads = flags.threads;
  options.isa = flags.isa;
  options.activations = flags.activations == "f32" ? ActivationMode::kF32 : ActivationMode::kInt8;
  return options;
}

SessionOptions SessionOptionsOf(const std::string& model, const CommonFlags& flags,
                                const std::optional<KvSettings>& kv) {
  SessionOptions options;
  options.kv = kv;
  options.path = model;
  options.backend = flags.backend;
  options.backend_options = BackendOptionsOf(flags);
  options.memory_bytes = static_cast<int64_t>(flags.memory_gb * 1e9);
  return options;
}

Result<std::unique_ptr<ModelSession>> OpenSession(const std::string& model,
                                                  const CommonFlags& flags, const Console& console,
                                                  const std::optional<KvSettings>& kv) {
  const SessionOptions options = SessionOptionsOf(model, flags, kv);
  ProgressBar bar(console, "loading", HumanBytes, "");
  auto session =
      ModelSession::Open(options, [&bar](int64_t done, int64_t total) { bar.Update(done, total); });
  bar.Erase();
  if (session.ok() && !flags.quiet) {
    const std::string unused = UnusedText(session.value()->parts());
    if (!unused.empty()) PrintNote(console, "not used of " + model + ": " + unused);
  }
  if (session.ok() && flags.verbose) {
    const Backend& backend = session.value()->backend();
    PrintNote(
        console,
        fmt::format("loaded {} on {}/{} with {} threads, {} of weights", model, backend.name(),
                    backend.isa(), backend.num_threads(),
                    HumanBytes(static_cast<double>(session.value()->model().prepared_bytes()))));
  }
  return session;
}

Result<std::vector<int32_t>> ParseIds(std::string_view text) {
  constexpr std::string_view kSeparators = ", \t\r\n";
  std::vector<int32_t> ids;
  size_t at = text.find_first_not_of(kSeparators);
  while (at != std::string_view::npos) {
    const size_t end = std::min(text.find_first_of(kSeparators, at), text.size());
    int32_t id = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, id);
    if (error != std::errc() || stop != text.data() + end || id < 0) {
      return InvalidArgument(fmt::format("expected token ids like 1,2,3, found \"{}\"",
                                         text.substr(at, std::min<size_t>(end - at, 40))));
    }
    ids.push_back(id);
    at = text.find_first_not_of(kSeparators, end);
  }
  if (ids.empty()) return InvalidArgument("expected token ids like 1,2,3, found none");
  return ids;
}

std::string CheckIds(const std::string& text) { return ParseIds(text).status().message(); }

Result<std::string> ReadStdin() {
  constexpr size_t kMaxBytes = size_t{1} << 30;
  std::string text;
  char buffer[1 << 16];
  while (true) {
    const size_t n = std::fread(buffer, 1, sizeof(buffer), stdin);
    text.append(buffer, n);
    if (text.size() > kMaxBytes) {
      return InvalidArgument("stdin: expected at most 1 GiB of text, found more");
    }
    if (n < sizeof(buffer)) break;
  }
  if (std::ferror(stdin) != 0) return IoError("stdin: cannot be read");
  return text;
}

Status CheckUtf8(std::string_view text, std::string_view what) {
  const std::string repaired = tok::RepairUtf8(text);
  if (repaired == text) return Status::Ok();
  size_t at = 0;
  while (at < text.size() && at < repaired.size() && text[at] == repaired[at]) ++at;
  return InvalidArgument(fmt::format(
      "{}: expected UTF-8, found a malformed sequence at byte {}: convert it first", what, at));
}

}  // namespace tq
