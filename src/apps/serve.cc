// turboquant serve: models over HTTP.
#include <condition_variable>
#include <memory>
#include <mutex>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "apps/command.h"
#include "apps/output.h"
#include "apps/serve_flags.h"
#include "apps/serve_models.h"

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

// Where the server is; scripts wait for this line.
Status Announce(const ServeFlags& flags, const HttpServer& http, const Service& service) {
  OrderedJson names = OrderedJson::array();
  std::string served;
  std::string contexts;
  for (const auto& model : service.models()) {
    names.push_back(model->name());
    served += (served.empty() ? "" : ", ") + model->name();
    contexts += fmt::format("{}{}", contexts.empty() ? "" : ", ", model->max_context());
  }
  if (flags.common.json) {
    return WriteJson({{"address", http.address()},
                      {"port", http.port()},
                      {"model", service.first_model().name()},
                      {"context_length", service.first_model().max_context()},
                      {"models", std::move(names)}});
  }
  return WriteOut(fmt::format("serving {} at {} (context {} tokens, {} at once); Ctrl-C stops\n",
                              served, http.address(), contexts, flags.max_batch));
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

void WarnOfTemplates(const Service& service) {
  for (const auto& model : service.models()) {
    if (model->text().chat) continue;
    PrintWarning(
        fmt::format("{}: the checkpoint has no chat template: only /v1/completions can "
                    "answer",
                    model->name()));
  }
}

Status ServeUntilSignal(const ServeFlags& flags, const Console& console, Service& service,
                        Interrupts& interrupts) {
  AllowManyConnections();
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> http,
                      HttpServer::Listen(ServeHttpOptions(flags), [&service](const auto& exchange) {
                        service.Handle(exchange);
                      }));
  service.SetConnectionCounter([server = http.get()] { return server->num_connections(); });
  TQ_RETURN_IF_ERROR(Announce(flags, *http, service));
  service.log().Write(LogLevel::kInfo, "start",
                      {{"address", http->address()}, {"model", service.first_model().name()}});
  WaitForSignal(interrupts);
  if (!flags.common.quiet) {
    PrintNote(console, fmt::format("stopping; {} answers to finish", http->num_exchanges()));
  }
  http->StopAccepting();
  const auto limit = std::chrono::milliseconds(static_cast<int64_t>(flags.drain_timeout * 1000));
  const bool complete = http->WaitIdle(limit);
  service.log().Write(LogLevel::kInfo, "stop", {{"complete", complete ? "true" : "false"}});
  for (const Status& error : service.pool().DiskErrors()) PrintNote(console, error.message());
  return Status::Ok();
}

Status RunServe(const ServeFlags& flags, Interrupts& interrupts) {
  TQ_ASSIGN_OR_RETURN(Settings settings, MakeSettings(flags));
  const Console console = MakeConsole(flags.common.quiet);
  TQ_ASSIGN_OR_RETURN(ServeModels models, DescribeModels(flags, console));
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<Service> service,
                      Service::Create(std::move(models.entries), std::move(models.pool),
                                      std::move(settings.options), std::move(settings.log)));
  WarnOfTemplates(*service);
  if (!flags.load_on_demand) TQ_RETURN_IF_ERROR(service->pool().Get(0).status());
  return ServeUntilSignal(flags, console, *service, interrupts);
}

}  // namespace

RunCommand RegisterServe(CLI::App& app) {
  const auto flags = std::make_shared<ServeFlags>();
  AddServeFlags(app, *flags);
  SetExamples(app,
              {"turboquant serve --model Qwen3-8B-3bit",
               "turboquant serve --model Qwen3-8B-3bit --host 0.0.0.0 --api-key-file keys.txt",
               "turboquant serve --model Qwen3-8B-3bit --kv-bits 4 --disk-cache",
               "turboquant serve --model small=Qwen3-4B-4bit --model Qwen3-8B-3bit --memory-gb 12",
               "curl http://127.0.0.1:8080/v1/chat/completions -H 'Content-Type: "
               "application/json' -d '{\"messages\": [{\"role\": \"user\", \"content\": "
               "\"Hi\"}]}'"});
  return [flags](Interrupts& interrupts) { return RunServe(*flags, interrupts); };
}

}  // namespace tq
