#include "server/log.h"

#include <atomic>
#include <exception>

#include <fmt/format.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace tq::server {
namespace {

spdlog::level::level_enum ToLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

// As it is when it is one plain word, else in quotes with escapes: a client's text stays in its
// line.
std::string Quoted(std::string_view value) {
  bool plain = !value.empty();
  for (const char c : value) {
    const auto u = static_cast<unsigned char>(c);
    if (u <= 0x20 || u == 0x7f || c == '"' || c == '=' || c == '\\') plain = false;
  }
  if (plain) return std::string(value);
  std::string quoted = "\"";
  for (const char c : value) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (u < 0x20 || u == 0x7f) {
      quoted += fmt::format("\\x{:02x}", u);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace

struct ServerLog::Impl {
  std::unique_ptr<spdlog::logger> logger;
};

ServerLog::ServerLog() = default;
ServerLog::ServerLog(ServerLog&&) noexcept = default;
ServerLog& ServerLog::operator=(ServerLog&&) noexcept = default;
ServerLog::~ServerLog() = default;

Result<ServerLog> ServerLog::Open(const std::string& path, LogLevel level) {
  ServerLog log;
  try {
    spdlog::sink_ptr sink;
    if (path == "-") {
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    } else {
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    }
    log.impl_ = std::make_unique<Impl>();
    log.impl_->logger = std::make_unique<spdlog::logger>("turboquant", std::move(sink));
    log.impl_->logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
    log.impl_->logger->set_level(ToLevel(level));
    log.impl_->logger->flush_on(spdlog::level::info);
  } catch (const std::exception& e) {
    return IoError(fmt::format("cannot log to {}: {}", path, e.what()));
  }
  return log;
}

void ServerLog::Write(LogLevel level, std::string_view event,
                      std::initializer_list<Field> fields) const {
  if (impl_ == nullptr || !impl_->logger->should_log(ToLevel(level))) return;
  std::string line(event);
  for (const auto& [key, value] : fields) line += fmt::format(" {}={}", key, Quoted(value));
  impl_->logger->log(ToLevel(level), line);
}

}  // namespace tq::server
