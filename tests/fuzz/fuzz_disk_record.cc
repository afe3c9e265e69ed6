// Any bytes as a record of the disk prompt cache: refused with a Status, or written again as the
// same bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "cache/disk_index.h"
#include "cache/disk_record.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace {

void Check(std::span<const std::byte> bytes) {
  const auto header = tq::ReadDiskHeader(bytes);
  if (!header.ok()) return;
  std::vector<std::byte> again;
  tq::WriteDiskHeader(header->record, again);
  if (again.size() != header->size) std::abort();
  if (std::memcmp(again.data(), bytes.data(), again.size()) != 0) std::abort();
  (void)header->record.key();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  Check(bytes);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto name = tq::DiskName::Parse(text); name && name->FileName() != text) std::abort();
  // Behind the checksum: the fields as they are, with the sum that belongs to them.
  if (size < tq::kDiskFixedBytes) return 0;
  const size_t hashed = size - sizeof(uint64_t);
  std::vector<std::byte> summed(bytes.begin(), bytes.end());
  const uint64_t sum = XXH3_64bits(summed.data(), hashed);
  std::memcpy(summed.data() + hashed, &sum, sizeof(sum));
  Check(summed);
  return 0;
}
