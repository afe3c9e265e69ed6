// Who has read a part of a mapped file for the last time lets go of its pages at once, without
// knowing whose file it is: while a model loads, its stored and its prepared form are then never in
// memory together.
#pragma once

#include <cstddef>
#include <span>

namespace tq {

// Bytes of an open MappedFile lose their pages; still wanted ones come back from the page cache.
// Other memory is left alone. Any thread.
void DropMappedPages(std::span<const std::byte> bytes);

}  // namespace tq
