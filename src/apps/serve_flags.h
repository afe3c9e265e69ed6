// Flags of `serve`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "apps/disk_cache_flags.h"
#include "apps/flags.h"
#include "apps/kv_flags.h"
#include "server/service.h"
#include "server/transport/http_server.h"

namespace tq {

struct ServeFlags {
  CommonFlags common;
  std::vector<std::string> models;  // as given: [NAME,...=]PATH
  std::string host = "127.0.0.1";
  int port = 8080;
  std::string unix_socket;
  int http_threads = 4;
  std::vector<std::string> api_keys;
  std::string api_key_file;
  std::vector<std::string> names;
  bool strict_model = false;
  std::vector<std::string> origins;
  int rate_limit = 0;
  bool load_on_demand = false;
  int max_loaded = 0;
  double idle_unload = 0;
  int max_batch = 16;
  int max_queue = 256;
  int64_t max_tokens = -1;
  int64_t context_length = 0;
  int64_t kv_tokens = 0;
  int64_t prefill_chunk = 512;
  bool no_prefix_cache = false;
  KvFlags kv;
  DiskCacheFlags disk_cache;
  double timeout = 0;
  double drain_timeout = 30;
  bool keepalive = true;
  double keepalive_interval = 10;
  bool stream_usage = false;
  bool greedy_calls = false;
  std::string greedy_tags;
  std::string embedding_pooling;
  std::string template_args;
  int64_t max_body_mb = 64;
  std::string log_file;
  std::string log_level = "info";
  std::string replay;  // a file of answers, for tests: no weights are read
};

void AddServeFlags(CLI::App& app, ServeFlags& flags);

// Those of the flags, of --api-key-file and of TURBOQUANT_API_KEY (separated by commas).
// Errors: a file that cannot be read, an empty key.
Result<std::vector<std::string>> ReadApiKeys(const ServeFlags& flags);
// Of the model at a path. Errors: those of MakeDiskCacheOptions; a disk cache without the prefix
// cache.
Result<EngineOptions> ServeEngineOptions(const ServeFlags& flags, const std::string& path);
server::HttpServerOptions ServeHttpOptions(const ServeFlags& flags);
// Without the keys. Errors: --chat-template-args that are no JSON object, tags that are not two.
Result<server::ServiceOptions> ServeServiceOptions(const ServeFlags& flags);

}  // namespace tq
