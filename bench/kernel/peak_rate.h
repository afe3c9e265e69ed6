// What the multiplying instructions of an instruction set do at best, from registers: 10^9
// multiply-adds a second of `threads` threads at once. 0: not known here.
#pragma once

#include "backend/cpu/isa.h"
#include "base/threads.h"

namespace tq {

double PeakInt8(Isa isa, ThreadPool& pool);
double PeakF32(Isa isa, ThreadPool& pool);

}  // namespace tq
