#include "weights/checkpoint_content.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/sha256.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tq {
namespace {

constexpr std::string_view kNoteVersion = "turboquant-content-1";
constexpr int64_t kNsPerSecond = 1'000'000'000;

std::string Hex(Sha256& hash) {
  std::string out;
  for (const uint8_t byte : hash.Finish()) out += fmt::format("{:02x}", byte);
  return out;
}

std::string HexOf(std::string_view text) {
  Sha256 hash;
  hash.Add(text);
  return Hex(hash);
}

std::string HashTensors(const WeightSource& source) {
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              XXH3_freeState);
  if (state == nullptr) return "";
  XXH3_128bits_reset(state.get());
  for (const SourceTensor& tensor : source.tensors()) {
    const std::string header =
        fmt::format("{}\n{} {} {} {} {} {} {}\n", tensor.name, ShapeString(tensor.shape),
                    DTypeName(tensor.dtype), static_cast<int>(tensor.codec), tensor.is_float_like,
                    tensor.row_pitch, tensor.value_pitch, tensor.bytes.size());
    XXH3_128bits_update(state.get(), header.data(), header.size());
    XXH3_128bits_update(state.get(), tensor.bytes.data(), tensor.bytes.size());
    source.DropPages(tensor);
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string WithConfig(const WeightSource& source, const std::string& tensors) {
  const auto config = source.ReadDocument("config.json");
  return HexOf(std::string(source.container()) + "\n" + tensors + "\n" +
               (config.ok() ? *config : std::string()))
      .substr(0, 32);
}

struct Identity {
  std::string text;        // "": unknown
  int64_t changed_ns = 0;  // the latest change of any file
};

int64_t ToNs(const timespec& time) { return int64_t{time.tv_sec} * kNsPerSecond + time.tv_nsec; }

// Every file that the tensors may come from, as the system knows it. The time of the last change of
// the inode cannot be set by a program, unlike that of the content.
Identity IdentityOf(const std::string& path) {
  Identity out;
  const bool is_folder = IsDirectory(path);
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const std::string folder = is_folder ? path : parent.empty() ? "." : parent;
  const auto names = ListDirectory(folder);
  if (!names.ok()) return out;
  std::string text;
  for (const std::string& name : *names) {
    struct stat info {};
    if (!is_folder && !name.ends_with(".gguf")) continue;
    if (::stat((folder + "/" + name).c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    const int64_t changed = std::max(ToNs(info.st_mtim), ToNs(info.st_ctim));
    out.changed_ns = std::max(out.changed_ns, changed);
    text += fmt::format("{}\n{} {} {} {} {}\n", name, info.st_dev, info.st_ino, info.st_size,
                        ToNs(info.st_mtim), ToNs(info.st_ctim));
  }
  if (!text.empty()) out.text = HexOf(text);
  return out;
}

// Complete or not at all; of no consequence when it cannot be.
void WriteNote(const std::string& path, const std::string& content) {
  const std::string partial = fmt::format("{}.{}.partial", path, ::getpid());
  if (!WriteFile(partial, content).ok() || ::rename(partial.c_str(), path.c_str()) != 0) {
    ::unlink(partial.c_str());
  }
}

}  // namespace

std::string CheckpointContent(const WeightSource& source) {
  return WithConfig(source, HashTensors(source));
}

std::string NotedCheckpointContent(const WeightSource& source, const std::string& notes) {
  std::error_code error;
  const std::string canonical = std::filesystem::weakly_canonical(source.path(), error).string();
  std::filesystem::create_directories(notes, error);
  const std::string note = notes + "/" + HexOf(canonical).substr(0, 32);
  const int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  const Identity before = IdentityOf(source.path());
  if (before.text.empty()) return CheckpointContent(source);
  const auto line = [&](const std::string& tensors) {
    const std::string body = fmt::format("{} {} {}", kNoteVersion, before.text, tensors);
    return body + " " + HexOf(body) + "\n";
  };
  constexpr size_t kHashDigits = 32;
  const size_t at = kNoteVersion.size() + 1 + before.text.size() + 1;
  if (const auto found = ReadTextFile(note, 4096); found.ok() && found->size() > at + kHashDigits) {
    const std::string tensors = found->substr(at, kHashDigits);
    if (*found == line(tensors)) return WithConfig(source, tensors);
  }
  const std::string tensors = HashTensors(source);
  // Of files that are being changed the times tell nothing yet.
  const bool settled = before.changed_ns < now - 2 * kNsPerSecond;
  if (settled && IdentityOf(source.path()).text == before.text) WriteNote(note, line(tensors));
  return WithConfig(source, tensors);
}

}  // namespace tq
