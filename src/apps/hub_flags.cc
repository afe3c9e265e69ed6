#include "apps/hub_flags.h"

#include <cstdlib>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "hub/packaged_model.h"
#include "hub/repo_id.h"

namespace tq {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string HubHome() {
  if (const std::string home = Environment("HF_HOME"); !home.empty()) return home;
  const std::string cache = Environment("XDG_CACHE_HOME");
  return (cache.empty() ? Environment("HOME") + "/.cache" : cache) + "/huggingface";
}

std::string Token() {
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    if (std::string token = Environment(name); !token.empty()) return token;
  }
  std::string path = Environment("HF_TOKEN_PATH");
  if (path.empty()) path = HubHome() + "/token";
  const auto text = ReadTextFile(path, 4096);
  if (!text.ok()) return "";
  std::string token = *text;
  while (!token.empty() && static_cast<unsigned char>(token.back()) <= ' ') token.pop_back();
  return token;
}

}  // namespace

HubOptions HubOptionsFromEnvironment() {
  HubOptions options;
  if (std::string endpoint = Environment("HF_ENDPOINT"); !endpoint.empty()) {
    while (endpoint.ends_with('/')) endpoint.pop_back();
    options.endpoint = endpoint;
  }
  options.cache = Environment("HF_HUB_CACHE");
  if (options.cache.empty()) options.cache = HubHome() + "/hub";
  options.token = Token();
  return options;
}

bool IsHubOffline() {
  const std::string value = Environment("HF_HUB_OFFLINE");
  return value == "1" || value == "true" || value == "TRUE" || value == "yes" || value == "ON";
}

std::string OwnCacheFolder() {
  std::string cache = Environment("XDG_CACHE_HOME");
  if (cache.empty()) {
    const std::string home = Environment("HOME");
    cache = (home.empty() ? std::filesystem::temp_directory_path().string() : home) + "/.cache";
  }
  return cache + "/turboquant";
}

CLI::Validator ModelPath() {
  return {[](std::string& model) {
            if (FileExists(model)) return std::string();
            if (const PackagedModel* packaged = FindPackagedModel(model)) {
              Result<std::string> file = FindPackagedFile(OwnCacheFolder(), *packaged);
              if (!file.ok()) return file.status().message();
              model = std::move(file).value();
              return std::string();
            }
            const Result<RepoId> repo = ParseRepoId(model);
            if (!repo.ok()) return std::string();
            const auto snapshot = FindSnapshot(HubOptionsFromEnvironment().cache, *repo);
            if (!snapshot.ok()) {
              return fmt::format(
                  "{0}: expected a path, or a repository that is in the cache, found neither: "
                  "`turboquant pull {0}` downloads it",
                  model);
            }
            model = *snapshot;
            return std::string();
          },
          "", "model"};
}

}  // namespace tq
