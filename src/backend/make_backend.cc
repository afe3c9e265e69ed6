#include <algorithm>
#include <string>

#include "backend/backend.h"

namespace tq {

#define BACKEND(name, Make, Isas)                               \
  Result<std::unique_ptr<Backend>> Make(const BackendOptions&); \
  std::vector<std::string> Isas();
#include "backend/backend_list.inc"
#undef BACKEND

namespace {

struct Entry {
  const char* name;
  Result<std::unique_ptr<Backend>> (*make)(const BackendOptions&);
  std::vector<std::string> (*isas)();
};

constexpr Entry kEntries[] = {
#define BACKEND(name, Make, Isas) {name, Make, Isas},
#include "backend/backend_list.inc"
#undef BACKEND
};

constexpr int kMaxThreads = 1024;

}  // namespace

std::vector<BackendChoice> AvailableBackends() {
  std::vector<BackendChoice> choices;
  for (const Entry& entry : kEntries) {
    for (std::string& isa : entry.isas()) choices.push_back({entry.name, std::move(isa)});
  }
  return choices;
}

Result<std::unique_ptr<Backend>> MakeBackend(std::string_view name, const BackendOptions& options) {
  if (options.num_threads < 0 || options.num_threads > kMaxThreads) {
    return InvalidArgument("expected 0 (all CPUs) to " + std::to_string(kMaxThreads) +
                           " threads, found " + std::to_string(options.num_threads));
  }
  std::string available;
  for (const BackendChoice& choice : AvailableBackends()) {
    const bool name_fits = name.empty() || name == choice.backend;
    const bool isa_fits = options.isa.empty() || options.isa == choice.isa;
    if (name_fits && isa_fits) {
      BackendOptions chosen = options;
      chosen.isa = choice.isa;
      const Entry* entry = std::find_if(std::begin(kEntries), std::end(kEntries),
                                        [&](const Entry& e) { return choice.backend == e.name; });
      return entry->make(chosen);
    }
    available += (available.empty() ? "" : ", ") + choice.backend + "/" + choice.isa;
  }
  return InvalidArgument("expected a backend of this machine (" + available + "), found '" +
                         std::string(name) + "/" + options.isa +
                         "': choose one of them, or none for the best");
}

}  // namespace tq
