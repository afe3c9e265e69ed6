// How fast a file comes from its disk.
#pragma once

#include <string>

namespace tq {

// Bytes per second of 16 reads of 4 MiB each, all over the file, that do not come from the system's
// cache; 0: the file is smaller than that, or cannot be read.
double MeasureDiskSpeed(const std::string& file);

}  // namespace tq
