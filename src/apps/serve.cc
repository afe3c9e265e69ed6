// turboquant serve: a model over HTTP.
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "apps/command.h"
#include "apps/output.h"
#include "apps/serve_flags.h"
#include "apps/serve_replay.h"

namespace tq {
namespace {

using server::HttpServer;
using server::LogLevel;
using server::ServerLog;
using server::Service;

LogLevel LevelOf(const std::string& name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "warning") return LogLevel::kWarning;
  return name == "error" ? LogLevel::kError : LogLevel::kInfo;
}

// "Qwen3-8B-3bit" of "models/Qwen3-8B-3bit/".
std::string FolderName(const std::string& path) {
  std::filesystem::path name(path);
  if (!name.has_filename()) name = name.parent_path();
  return name.has_filename() ? name.filename().string() : path;
}

// Without what answers.
server::ServedModel MakeServed(const ServeFlags& flags) {
  server::ServedModel served;
  served.name = flags.names.empty() ? FolderName(flags.model) : flags.names.front();
  for (size_t i = 1; i < flags.names.size(); ++i) served.aliases.push_back(flags.names[i]);
  served.path = flags.model;
  return served;
}

// Where the server is; scripts wait for this line.
Status Announce(const ServeFlags& flags, const HttpServer& http, const Service& service) {
  if (flags.common.json) {
    return WriteJson({{"address", http.address()},
                      {"port", http.port()},
                      {"model", service.model().name},
                      {"context_length", service.max_context()}});
  }
  return WriteOut(fmt::format("serving {} at {} (context {} tokens, {} at once); Ctrl-C stops\n",
                              service.model().name, http.address(), service.max_context(),
                              flags.max_batch));
}

// Each connection is an open file; the usual soft limit is far below what the server takes.
void AllowManyConnections() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

// Until the first signal.
void WaitForSignal(Interrupts& interrupts) {
  std::mutex mutex;
  std::condition_variable changed;
  bool stop = false;
  const Interrupts::Scope scope(interrupts, [&] {
    const std::lock_guard lock(mutex);
    stop = true;
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return stop; });
}

// What can be wrong without the model.
struct Settings {
  server::ServiceOptions options;
  ServerLog log;
};

Result<Settings> MakeSettings(const ServeFlags& flags) {
  Settings settings;
  TQ_ASSIGN_OR_RETURN(settings.options, ServeServiceOptions(flags));
  TQ_ASSIGN_OR_RETURN(settings.options.api_keys, ReadApiKeys(flags));
  if (!flags.log_file.empty()) {
    TQ_ASSIGN_OR_RETURN(settings.log, ServerLog::Open(flags.log_file, LevelOf(flags.log_level)));
  }
  return settings;
}

Status ServeUntilSignal(const ServeFlags& flags, Settings settings, server::ServedModel served,
                        Interrupts& interrupts) {
  const Console console = MakeConsole(flags.common.quiet);
  AllowManyConnections();
  if (!served.text->chat) {
    PrintWarning("the checkpoint has no chat template: only /v1/completions can answer");
  }
  Service service(std::move(served), std::move(settings.options), std::move(settings.log));
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> http,
                      HttpServer::Listen(ServeHttpOptions(flags), [&service](const auto& exchange) {
                        service.Handle(exchange);
                      }));
  service.SetConnectionCounter([server = http.get()] { return server->num_connections(); });
  TQ_RETURN_IF_ERROR(Announce(flags, *http, service));
  service.log().Write(LogLevel::kInfo, "start",
                      {{"address", http->address()}, {"model", service.model().name}});
  WaitForSignal(interrupts);
  if (!flags.common.quiet) {
    PrintNote(console, fmt::format("stopping; {} answers to finish", http->num_exchanges()));
  }
  http->StopAccepting();
  const auto limit = std::chrono::milliseconds(static_cast<int64_t>(flags.drain_timeout * 1000));
  const bool complete = http->WaitIdle(limit);
  service.log().Write(LogLevel::kInfo, "stop", {{"complete", complete ? "true" : "false"}});
  NoteDiskCacheError(console, service.engine());
  return Status::Ok();
}

Status RunServe(const ServeFlags& flags, Interrupts& interrupts) {
  TQ_ASSIGN_OR_RETURN(Settings settings, MakeSettings(flags));
  server::ServedModel served = MakeServed(flags);
  if (!flags.replay.empty()) {
    TQ_ASSIGN_OR_RETURN(const std::unique_ptr<ReplaySession> replay, OpenReplay(flags));
    served.engine = replay->engine.get();
    served.text = &replay->text;
    served.vocab_size = replay->text.tokenizer->vocab_size();
    served.backend = "replay";
    return ServeUntilSignal(flags, std::move(settings), std::move(served), interrupts);
  }
  const Console console = MakeConsole(flags.common.quiet);
  TQ_ASSIGN_OR_RETURN(const std::optional<KvSettings> kv, KvSettingsOf(flags.kv));
  TQ_ASSIGN_OR_RETURN(EngineOptions engine_options, ServeEngineOptions(flags));
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<ModelSession> session,
                      OpenSession(flags.model, flags.common, console, kv));
  TQ_ASSIGN_OR_RETURN(served.text, session->LoadText());
  TQ_RETURN_IF_ERROR(served.text->tokenizer_status);
  TQ_ASSIGN_OR_RETURN(served.engine, session->StartEngine(std::move(engine_options)));
  served.vocab_size = session->model().spec().vocab_size;
  served.backend = fmt::format("{}/{}", session->backend().name(), session->backend().isa());
  return ServeUntilSignal(flags, std::move(settings), std::move(served), interrupts);
}

}  // namespace

RunCommand RegisterServe(CLI::App& app) {
  const auto flags = std::make_shared<ServeFlags>();
  AddServeFlags(app, *flags);
  SetExamples(app, {"turboquant serve --model Qwen3-8B-3bit",
                    "turboquant serve --model Qwen3-8B-3bit --host 0.0.0.0 --api-key-file keys.txt",
                    "turboquant serve --model Qwen3-8B-3bit --kv-bits 4 --disk-cache",
                    "curl http://127.0.0.1:8080/v1/chat/completions -H 'Content-Type: "
                    "application/json' -d '{\"messages\": [{\"role\": \"user\", \"content\": "
                    "\"Hi\"}]}'"});
  return [flags](Interrupts& interrupts) { return RunServe(*flags, interrupts); };
}

}  // namespace tq
