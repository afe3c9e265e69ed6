// What a checkpoint's bytes are: two with the same name answer alike, whatever their paths. For
// what outlives a process and must not be taken for another checkpoint's.
#pragma once

#include <string>

#include "weights/source.h"

namespace tq {

// Of config.json and every byte of every tensor with its name, shape and format.
std::string CheckpointContent(const WeightSource& source);

// The same; reads the tensors only when their files are not those of the last time. What they were
// is noted in a file below `notes` (a folder, made when missing; failures cost time only).
std::string NotedCheckpointContent(const WeightSource& source, const std::string& notes);

}  // namespace tq
