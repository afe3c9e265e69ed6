// How fast this machine reads memory: the ceiling of decoding, which reads all weights once per
// token.
#pragma once

namespace tq {

// Bytes per second of num_threads threads (0: all CPUs) that read a buffer of 256 MiB piece by
// piece for about 0.15 s; the best piece counts. 0 when the memory for the buffer is not there.
double MeasureReadBandwidth(int num_threads);

}  // namespace tq
