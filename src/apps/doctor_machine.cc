#include "apps/doctor_machine.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <thread>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "apps/terminal.h"
#include "apps/version.h"
#include "backend/backend.h"
#include "base/memory.h"
#include "eval/bandwidth.h"
#include "plan/machines.h"

namespace tq {
namespace {

std::string Bytes(int64_t n) { return HumanBytes(static_cast<double>(n)); }

std::string ReadSmallFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

// CPUs' worth of time that the container may use.
std::optional<double> CgroupCpus() {
  std::istringstream text(ReadSmallFile("/sys/fs/cgroup/cpu.max"));
  double quota = 0;
  double period = 0;
  if (!(text >> quota >> period) || period <= 0) return std::nullopt;
  return quota / period;
}

void CheckBuild(Findings& findings) {
  const std::string build = BuildText();
  const bool fast = build.find("Release") != std::string::npos ||
                    build.find("RelWithDebInfo") != std::string::npos;
  findings.push_back({"build", fast ? FindingLevel::kOk : FindingLevel::kWarn, build,
                      fast ? "" : "slow: build it with `cmake --preset release`"});
}

void CheckProcessor(Findings& findings) {
  std::vector<std::string> names;
  for (const BackendChoice& choice : AvailableBackends()) {
    if (choice.backend == "cpu") names.push_back(choice.isa);
  }
  if (names.empty()) {
    findings.push_back({"cpu.instructions", FindingLevel::kFail,
                        "neither AVX2 with FMA and F16C nor NEON with dotprod",
                        "use another machine: only the slow `--backend ref` runs here"});
  } else {
    findings.push_back({"cpu.instructions", FindingLevel::kOk,
                        fmt::format("{} (the first is used)", fmt::join(names, ", ")), ""});
  }
  const int cpus = static_cast<int>(std::thread::hardware_concurrency());
  const std::optional<double> quota = CgroupCpus();
  if (quota && *quota < cpus) {
    findings.push_back({"cpu.count", FindingLevel::kWarn,
                        fmt::format("{} CPUs, but time for {:.1f} of them", cpus, *quota),
                        fmt::format("give --threads {}: more threads only wait for each other",
                                    std::max(1, static_cast<int>(std::floor(*quota))))});
    return;
  }
  findings.push_back({"cpu.count", FindingLevel::kOk, fmt::format("{} CPUs", cpus), ""});
}

MachineFacts CheckMemory(Findings& findings) {
  const SystemMemory memory = ReadSystemMemory();
  MachineFacts facts;
  facts.available_bytes = memory.available;
  std::string found =
      fmt::format("{} available of {}", Bytes(memory.available), Bytes(memory.total));
  if (memory.container_limit >= 0) {
    found += fmt::format("; this container may use {}, {} of it are left",
                         Bytes(memory.container_limit), Bytes(memory.available));
  }
  constexpr int64_t kLittle = int64_t{1} << 30;
  const bool little = facts.available_bytes < kLittle;
  findings.push_back({"memory.available", little ? FindingLevel::kWarn : FindingLevel::kOk, found,
                      little ? "close other programs, or raise the container's limit" : ""});

  const int64_t swap_used = memory.swap_total - memory.swap_free;
  const bool swaps = swap_used > kLittle;
  findings.push_back({"memory.swap", swaps ? FindingLevel::kWarn : FindingLevel::kOk,
                      fmt::format("{} in use of {}", Bytes(std::max<int64_t>(0, swap_used)),
                                  Bytes(std::max<int64_t>(0, memory.swap_total))),
                      swaps ? "memory is short: a model that is swapped out is very slow" : ""});

  const std::string huge = ReadSmallFile("/sys/kernel/mm/transparent_hugepage/enabled");
  if (huge.find("[never]") != std::string::npos) {
    findings.push_back({"memory.huge_pages", FindingLevel::kWarn, "switched off",
                        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (as root): "
                        "weights are read faster"});
  } else {
    findings.push_back({"memory.huge_pages", FindingLevel::kOk,
                        huge.empty() ? "unknown" : "available to programs that ask", ""});
  }
  if (const std::vector<int64_t> nodes = FreeBytesOfNodes(); nodes.size() > 1) {
    const int64_t most = *std::max_element(nodes.begin(), nodes.end());
    findings.push_back(
        {"memory.nodes", FindingLevel::kOk,
         fmt::format("{} memory nodes, {} free in one of them", nodes.size(), Bytes(most)), ""});
  }
  const double bandwidth = MeasureReadBandwidth(0);
  findings.push_back({"memory.bandwidth", FindingLevel::kOk,
                      fmt::format("{:.1f} GB/s: the limit of tokens/s is this over the bytes of "
                                  "the weights that a token reads",
                                  bandwidth / 1e9),
                      ""});
  return facts;
}

void CheckDisk(const std::string& folder, Findings& findings) {
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0) {
    findings.push_back({"disk.free", FindingLevel::kWarn,
                        fmt::format("{}: {}", folder, std::strerror(errno)),
                        "name a folder that can be read"});
    return;
  }
  const auto free = static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
  constexpr int64_t kLittle = int64_t{5} << 30;
  findings.push_back({"disk.free", free < kLittle ? FindingLevel::kWarn : FindingLevel::kOk,
                      fmt::format("{} at {}", Bytes(free), folder),
                      free < kLittle ? "make room before a download or a conversion" : ""});
}

void CheckLimits(Findings& findings) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    const bool few = files.rlim_cur < 1024;
    findings.push_back({"limits.open_files", few ? FindingLevel::kWarn : FindingLevel::kOk,
                        fmt::format("{}", files.rlim_cur),
                        few ? "ulimit -n 4096: every shard and every connection takes one" : ""});
  }
  rlimit memory{};
  if (::getrlimit(RLIMIT_AS, &memory) == 0 && memory.rlim_cur != RLIM_INFINITY) {
    findings.push_back({"limits.address_space", FindingLevel::kWarn,
                        Bytes(static_cast<int64_t>(memory.rlim_cur)),
                        "ulimit -v unlimited: mapped checkpoints count, too"});
  }
}

void CheckPort(int port, Findings& findings) {
  const int handle = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (handle < 0) return;
  const int yes = 1;
  ::setsockopt(handle, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool is_free =
      ::bind(handle, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  const int error = errno;
  ::close(handle);
  findings.push_back(
      {"port", is_free ? FindingLevel::kOk : FindingLevel::kWarn,
       is_free ? fmt::format("127.0.0.1:{} is free", port)
               : fmt::format("127.0.0.1:{}: {}", port, std::strerror(error)),
       is_free ? "" : "stop the program that listens there, or take another --port"});
}

}  // namespace

MachineFacts CheckMachine(const std::string& folder, int port, Findings& findings) {
  CheckBuild(findings);
  CheckProcessor(findings);
  const MachineFacts facts = CheckMemory(findings);
  CheckDisk(folder, findings);
  CheckLimits(findings);
  if (port > 0) CheckPort(port, findings);
  return facts;
}

}  // namespace tq
