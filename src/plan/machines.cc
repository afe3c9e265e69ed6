#include "plan/machines.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/file.h"
#include "base/memory.h"

namespace tq {

Machine ThisMachine() {
  const SystemMemory memory = ReadSystemMemory();
  Machine machine;
  machine.name = "this machine";
  machine.total_bytes = memory.container_limit >= 0 ? memory.container_limit : memory.total;
  machine.usable_bytes = std::max<int64_t>(memory.available, 0);
  machine.most_bytes = std::max(machine.usable_bytes, MostOf(machine.total_bytes));
  return machine;
}

std::vector<int64_t> FreeBytesOfNodes() {
  std::vector<int64_t> out;
  for (int node = 0;; ++node) {
    const auto text =
        ReadTextFile(fmt::format("/sys/devices/system/node/node{}/meminfo", node), 1 << 16);
    if (!text.ok()) return out;
    constexpr std::string_view kKey = "MemFree:";
    size_t at = text->find(kKey);
    if (at == std::string::npos) return out;
    at = text->find_first_of("0123456789", at + kKey.size());
    int64_t kib = 0;
    if (at != std::string::npos) {
      std::from_chars(text->data() + at, text->data() + text->size(), kib);
    }
    out.push_back(kib * 1024);
  }
}

std::vector<NamedMachine> KnownMachines() {
  // Where other programs of this kind are tried; two thirds of its memory are a program's at first.
  constexpr int64_t kMini = int64_t{16} << 30;
  return {{"mac-mini-16gb", "Mac mini (M4) with 16 GB", kMini, kMini * 66 / 100, 120e9}};
}

Result<NamedMachine> FindMachine(std::string_view name) {
  std::string known;
  for (const NamedMachine& machine : KnownMachines()) {
    if (machine.name == name) return machine;
    known += (known.empty() ? "" : ", ") + std::string(machine.name);
  }
  return InvalidArgument(fmt::format(
      "expected the name of a machine ({}), found \"{}\": or give --ram-gb", known, name));
}

Machine MachineOf(const NamedMachine& named) {
  Machine machine = AssumedMachine(std::string(named.name), named.ram_bytes);
  machine.usable_bytes = std::min(named.usable_bytes, machine.most_bytes);
  return machine;
}

}  // namespace tq
