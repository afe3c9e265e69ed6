// Status and Result<T>: how a failure travels. Files, requests and devices fail with a Status;
// broken invariants of our own abort (check.h). No exceptions cross a function of this project.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace tq {

enum class StatusCode {
  kOk = 0,
  kInvalidArgument,  // the caller asked for something that makes no sense
  kNotFound,         // a file, tensor or key is missing
  kUnsupported,      // understood, but this build or version cannot do it
  kCorrupt,          // bytes contradict the format
  kIo,               // the operating system said no
  kOutOfMemory,      // over the budget, or the allocation failed
  kBusy,             // try later
  kCancelled,
  kDeadline,
  kInternal,         // our bug, contained
};

std::string_view StatusCodeName(StatusCode code);

// A message is one line: expected, found, where, what to do.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}
  static Status Ok() { return {}; }

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // "layer 12 q_proj" + "expected ..." -> "layer 12 q_proj: expected ...". No-op when ok.
  Status WithContext(std::string_view where) const {
    if (ok()) return *this;
    return Status(code_, std::string(where) + ": " + message_);
  }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status InvalidArgument(std::string m) { return {StatusCode::kInvalidArgument, std::move(m)}; }
inline Status NotFound(std::string m) { return {StatusCode::kNotFound, std::move(m)}; }
inline Status Unsupported(std::string m) { return {StatusCode::kUnsupported, std::move(m)}; }
inline Status Corrupt(std::string m) { return {StatusCode::kCorrupt, std::move(m)}; }
inline Status IoError(std::string m) { return {StatusCode::kIo, std::move(m)}; }
inline Status OutOfMemory(std::string m) { return {StatusCode::kOutOfMemory, std::move(m)}; }
inline Status Busy(std::string m) { return {StatusCode::kBusy, std::move(m)}; }
inline Status Cancelled(std::string m) { return {StatusCode::kCancelled, std::move(m)}; }
inline Status Internal(std::string m) { return {StatusCode::kInternal, std::move(m)}; }

// A value or the Status that explains why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}                                   // NOLINT: implicit
  Result(Status status) : status_(std::move(status)) { TQ_CHECK(!status_.ok()); }  // NOLINT

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  T& value() & {
    TQ_CHECK(ok());
    return *value_;
  }
  const T& value() const& {
    TQ_CHECK(ok());
    return *value_;
  }
  T&& value() && {
    TQ_CHECK(ok());
    return std::move(*value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  Status status_;
  std::optional<T> value_;
};

#define TQ_CONCAT_INNER(a, b) a##b
#define TQ_CONCAT(a, b) TQ_CONCAT_INNER(a, b)

#define TQ_RETURN_IF_ERROR(expr)              \
  do {                                        \
    ::tq::Status tq_status_ = (expr);         \
    if (!tq_status_.ok()) return tq_status_;  \
  } while (0)

#define TQ_ASSIGN_OR_RETURN(decl, expr) TQ_ASSIGN_OR_RETURN_IMPL(TQ_CONCAT(tq_r_, __LINE__), decl, expr)
#define TQ_ASSIGN_OR_RETURN_IMPL(tmp, decl, expr) \
  auto tmp = (expr);                              \
  if (!tmp.ok()) return tmp.status();             \
  decl = std::move(tmp).value()

}  // namespace tq
