#include "apps/disk_cache_flags.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "apps/flags.h"
#include "base/sha256.h"

namespace tq {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// One folder for each model, so that each has a budget of its own: its name for people, and a hash
// of its path.
Result<std::string> DefaultFolder(const std::string& model) {
  std::string cache = Environment("XDG_CACHE_HOME");
  if (cache.empty()) {
    cache = Environment("HOME");
    if (cache.empty()) {
      return InvalidArgument(
          "--disk-cache: expected HOME or XDG_CACHE_HOME to be set, found neither: name a folder");
    }
    cache += "/.cache";
  }
  std::error_code error;
  const std::filesystem::path path = std::filesystem::weakly_canonical(model, error);
  Sha256 hash;
  hash.Add(path.string());
  std::string digits;
  const Sha256Digest digest = hash.Finish();
  for (size_t i = 0; i < 4; ++i) digits += fmt::format("{:02x}", digest[i]);
  const std::string name =
      path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
  return fmt::format("{}/turboquant/prompt-cache/{}-{}", cache, name, digits);
}

}  // namespace

void AddDiskCacheFlags(CLI::App& app, DiskCacheFlags& flags) {
  constexpr const char* kGroup = "Disk prompt cache (off unless asked for)";
  CLI::Option* on =
      app.add_option_function<std::string>(
             "--disk-cache", [&flags](const std::string& folder) { flags.folder = folder; },
             "Keep what was computed for prompts in DIR, over restarts; default DIR: "
             "~/.cache/turboquant/prompt-cache/NAME-HASH")
          ->type_name("[DIR]")
          ->expected(0, 1)
          ->default_str("")
          ->group(kGroup);
  app.add_option("--disk-cache-budget-gb", flags.budget_gb,
                 "Size of the folder in GiB; the least recently used goes first")
      ->check(InRange(0.001, 1e6))
      ->needs(on)
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--disk-cache-min-tokens", flags.min_tokens, "Shorter conversations are not saved")
      ->check(InRange(int64_t{0}, int64_t{1} << 30))
      ->needs(on)
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--disk-cache-save-every", flags.save_every,
                 "Tokens between two saves of a long prompt")
      ->check(InRange(int64_t{1}, int64_t{1} << 30))
      ->needs(on)
      ->capture_default_str()
      ->group(kGroup);
  app.add_flag("--disk-cache-no-prefill-checkpoints", flags.no_prefill_checkpoints,
               "Save at the end of a turn only")
      ->needs(on)
      ->group(kGroup);
}

Result<DiskCacheOptions> MakeDiskCacheOptions(const DiskCacheFlags& flags,
                                              const std::string& model) {
  DiskCacheOptions options;
  if (!flags.folder) return options;
  options.folder = *flags.folder;
  if (options.folder.empty()) {
    TQ_ASSIGN_OR_RETURN(options.folder, DefaultFolder(model));
  }
  options.budget_bytes = static_cast<int64_t>(flags.budget_gb * 0x1p30);
  options.min_tokens = flags.min_tokens;
  options.save_every = flags.save_every;
  options.prefill_checkpoints = !flags.no_prefill_checkpoints;
  return options;
}

void NoteDiskCacheError(const Console& console, const Engine& engine) {
  const Status error = engine.disk_error();
  if (!error.ok()) PrintNote(console, error.message());
}

}  // namespace tq
