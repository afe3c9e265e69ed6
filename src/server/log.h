// ServerLog: what the server says about its work, one line each: time, level, event, key=value.
// Prompts and answers are never in it. Thread: any.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace tq::server {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError };

class ServerLog {
 public:
  using Field = std::pair<std::string_view, std::string>;

  // Says nothing.
  ServerLog();
  // path: a file that is appended to; "-": stderr. Errors: kIo.
  static Result<ServerLog> Open(const std::string& path, LogLevel level);
  ServerLog(ServerLog&&) noexcept;
  ServerLog& operator=(ServerLog&&) noexcept;
  ~ServerLog();

  void Write(LogLevel level, std::string_view event, std::initializer_list<Field> fields) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tq::server
