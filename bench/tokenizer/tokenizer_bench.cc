// Tokenizer from a folder, for tools/oracle/tokenizer.py.
//
// tokenizer_bench time FOLDER FILE [REPEATS]
//   Encodes the file as one text; MB per second of processor time, as a JSON line.
// tokenizer_bench check FOLDER [plain]
//   Texts on stdin -> ids and decodings on stdout.
//
// "check" reads records (u32 little-endian length, bytes) and writes for each the ids (u32 count,
// i32 each) and the decoded text (u32 length, bytes). It fails when a streamed decoding differs
// from the whole one or shows half a character. "plain": special tokens stay text.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "base/file.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode.h"

namespace {

static_assert(std::endian::native == std::endian::little);

[[noreturn]] void Fail(const std::string& message) {
  std::fprintf(stderr, "error: %s\n", message.c_str());
  std::exit(1);
}

std::string ReadIfThere(const std::string& path) {
  return tq::FileExists(path) ? tq::ReadTextFile(path).value() : std::string();
}

std::unique_ptr<tq::Tokenizer> Load(const std::string& folder) {
  const std::string json = ReadIfThere(folder + "/tokenizer.json");
  const std::string tiktoken = ReadIfThere(folder + "/tiktoken.model");
  const std::string model = ReadIfThere(folder + "/tokenizer.model");
  const std::string config = ReadIfThere(folder + "/tokenizer_config.json");
  const std::string added = ReadIfThere(folder + "/added_tokens.json");
  auto tokenizer = tq::Tokenizer::Load(tq::TokenizerFiles{.tokenizer_json = json,
                                                          .tiktoken_model = tiktoken,
                                                          .tokenizer_model = model,
                                                          .tokenizer_config_json = config,
                                                          .added_tokens_json = added});
  if (!tokenizer.ok()) Fail(tokenizer.status().message());
  return std::move(tokenizer).value();
}

int Time(const std::string& folder, const std::string& path, int repeats) {
  const auto tokenizer = Load(folder);
  const auto text = tq::ReadTextFile(path);
  if (!text.ok()) Fail(text.status().message());
  std::vector<double> seconds;
  size_t num_ids = 0;
  for (int i = 0; i < repeats; ++i) {
    const std::clock_t start = std::clock();
    num_ids = tokenizer->Encode(*text, {}).size();
    seconds.push_back(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  std::sort(seconds.begin(), seconds.end());
  const double megabytes = static_cast<double>(text->size()) / 1e6;
  std::printf(
      "{\"bytes\": %zu, \"ids\": %zu, \"seconds\": %.4f, \"mb_per_s\": %.2f, "
      "\"best_mb_per_s\": %.2f}\n",
      text->size(), num_ids, seconds[seconds.size() / 2], megabytes / seconds[seconds.size() / 2],
      megabytes / seconds.front());
  return 0;
}

bool ReadRecord(std::string* record) {
  uint32_t size = 0;
  if (std::fread(&size, sizeof size, 1, stdin) != 1) return false;
  record->resize(size);
  if (std::fread(record->data(), 1, size, stdin) != size) Fail("stdin ends inside a record");
  return true;
}

void Write(const void* data, size_t bytes) {
  if (bytes > 0 && std::fwrite(data, bytes, 1, stdout) != 1) Fail("cannot write to stdout");
}

int Check(const std::string& folder, bool plain) {
  const auto tokenizer = Load(folder);
  std::string text;
  while (ReadRecord(&text)) {
    const auto ids = tokenizer->Encode(text, {.parse_special = !plain});
    const std::string decoded = tokenizer->Decode(ids, false);
    std::string streamed;
    tq::Detokenizer detokenizer(*tokenizer, false);
    for (size_t i = 0; i <= ids.size(); ++i) {
      const std::string piece = i < ids.size() ? detokenizer.Push(ids[i]) : detokenizer.Finish();
      if (!tq::tok::IsUtf8(piece)) Fail("a streamed piece holds half a character: " + text);
      streamed += piece;
    }
    if (streamed != decoded) Fail("streamed and whole decoding differ: " + text);
    const auto count = static_cast<uint32_t>(ids.size());
    const auto size = static_cast<uint32_t>(decoded.size());
    Write(&count, sizeof count);
    Write(ids.data(), ids.size() * sizeof ids[0]);
    Write(&size, sizeof size);
    Write(decoded.data(), decoded.size());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "time" && (argc == 4 || argc == 5)) {
    return Time(argv[2], argv[3], argc == 5 ? std::max(1, std::atoi(argv[4])) : 10);
  }
  if (mode == "check" && (argc == 3 || (argc == 4 && std::strcmp(argv[3], "plain") == 0))) {
    return Check(argv[2], argc == 4);
  }
  Fail("expected: tokenizer_bench time FOLDER FILE [REPEATS] | check FOLDER [plain]");
}
