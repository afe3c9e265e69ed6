#include "tokenizer/regex.h"

#include <algorithm>
#include <mutex>

#include <oniguruma.h>

#include "tokenizer/unicode.h"

namespace tq::tok {
namespace {

constexpr size_t kMaxPatternBytes = 64 << 10;
constexpr unsigned long kMinRetries = 10'000'000;

const OnigUChar* Bytes(std::string_view text) {
  // Never null: the library compares pointers.
  return reinterpret_cast<const OnigUChar*>(text.empty() ? "" : text.data());
}

// Compilation touches tables of the library.
std::mutex& LibraryMutex() {
  static std::mutex mutex;
  return mutex;
}

void InitializeLibrary() {
  OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
  onig_initialize(encodings, 1);
}

}  // namespace

struct Regex::Handle {
  ~Handle() { onig_free(regex); }
  regex_t* regex = nullptr;
};

Regex::Regex(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
Regex::~Regex() = default;

Result<std::shared_ptr<const Regex>> Regex::Compile(std::string_view pattern,
                                                    std::string_view where) {
  if (pattern.size() > kMaxPatternBytes) {
    return Corrupt(std::string(where) + ": regular expression of " +
                   std::to_string(pattern.size()) + " bytes, at most " +
                   std::to_string(kMaxPatternBytes) + " are allowed");
  }
  const std::lock_guard<std::mutex> lock(LibraryMutex());
  InitializeLibrary();
  auto handle = std::make_unique<Handle>();
  OnigErrorInfo info;
  const OnigUChar* begin = Bytes(pattern);
  const int code = onig_new(&handle->regex, begin, begin + pattern.size(), ONIG_OPTION_NONE,
                            ONIG_ENCODING_UTF8, ONIG_SYNTAX_DEFAULT, &info);
  if (code != ONIG_NORMAL) {
    handle->regex = nullptr;
    OnigUChar message[ONIG_MAX_ERROR_MESSAGE_LEN];
    const int length = onig_error_code_to_str(message, code, &info);
    return Corrupt(std::string(where) + ": regular expression: " +
                   std::string(reinterpret_cast<const char*>(message),
                               static_cast<size_t>(std::max(length, 0))));
  }
  return std::shared_ptr<const Regex>(new Regex(std::move(handle)));
}

struct RegexScan::State {
  State() : region(onig_region_new()), limits(onig_new_match_param()) {}
  ~State() {
    onig_region_free(region, 1);
    onig_free_match_param(limits);
  }
  OnigRegion* region;
  OnigMatchParam* limits;
};

RegexScan::RegexScan(const Regex& regex, std::string_view text)
    : regex_(regex), text_(text), state_(std::make_unique<State>()) {
  onig_initialize_match_param(state_->limits);
  // One long run of spaces may rightly be given back character by character.
  const unsigned long retries = std::max<unsigned long>(kMinRetries, 4 * text.size());
  onig_set_retry_limit_in_match_of_match_param(state_->limits, retries);
  onig_set_retry_limit_in_search_of_match_param(state_->limits, 4 * retries);
}

RegexScan::~RegexScan() = default;

bool RegexScan::Next(size_t* begin, size_t* end) {
  while (from_ <= text_.size()) {
    const OnigUChar* text = Bytes(text_);
    const OnigUChar* text_end = text + text_.size();
    onig_region_clear(state_->region);
    const int found =
        onig_search_with_param(regex_.handle_->regex, text, text_end, text + from_, text_end,
                               state_->region, ONIG_OPTION_NONE, state_->limits);
    if (found < 0) break;
    *begin = static_cast<size_t>(state_->region->beg[0]);
    *end = static_cast<size_t>(state_->region->end[0]);
    if (*begin == *end && *end == last_end_) {
      if (from_ == text_.size()) break;
      NextChar(text_, &from_);
      continue;
    }
    from_ = *end;
    last_end_ = *end;
    return true;
  }
  from_ = text_.size() + 1;
  return false;
}

bool AppendPropertyRanges(std::string_view name, std::vector<CharSet::Range>* ranges) {
  const std::lock_guard<std::mutex> lock(LibraryMutex());
  InitializeLibrary();
  // The interface takes bytes that it may write to, and does not.
  std::string copy(name);
  auto* begin = reinterpret_cast<OnigUChar*>(copy.data());
  const int ctype = ONIGENC_PROPERTY_NAME_TO_CTYPE(ONIG_ENCODING_UTF8, begin, begin + copy.size());
  if (ctype < 0) return false;
  OnigCodePoint sb_out = 0;
  const OnigCodePoint* table = nullptr;  // a count, then pairs
  if (ONIGENC_GET_CTYPE_CODE_RANGE(ONIG_ENCODING_UTF8, static_cast<OnigCtype>(ctype), &sb_out,
                                   &table) != 0 ||
      table == nullptr) {
    return false;
  }
  for (OnigCodePoint i = 0; i < table[0]; ++i) {
    const OnigCodePoint first = table[1 + 2 * i];
    const OnigCodePoint last = std::min<OnigCodePoint>(table[2 + 2 * i], CharSet::kMaxChar);
    if (first <= last) ranges->push_back({first, last});
  }
  return true;
}

}  // namespace tq::tok
