// Results on stdout.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace tq {

// Writes and flushes. Errors: kIo.
Status WriteOut(std::string_view text);
// One line; bytes that are no UTF-8 become U+FFFD.
Status WriteJson(const OrderedJson& json);

// Columns padded to the widest cell, two spaces apart; `right` marks those that are aligned right.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows,
                        const std::vector<bool>& right);

}  // namespace tq
