// Constraint: what may come next in one answer, for structured output (a grammar, a schema). The
// sampler takes its mask before everything else, so a token stays a function of logits, history,
// parameters and mask. Thread: engine, but for FillMask: any thread that has it to itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace tq {

class Constraint {
 public:
  virtual ~Constraint() = default;
  // Sets bit id % 32 of bits[id / 32] for every id that may come next, and clears all others. End
  // ids too: where the text may end, and only there.
  // Requires: bits holds the vocabulary; !IsTerminated().
  virtual void FillMask(std::span<uint32_t> bits) = 0;
  // The id that came; one of the last mask.
  virtual void Accept(int32_t id) = 0;
  // Whether the text is complete and nothing may follow.
  virtual bool IsTerminated() const = 0;
  // Whether the next id is the most probable one of the mask, whatever the temperature.
  virtual bool TakesBest() const { return false; }
  // Takes the last num_tokens of Accept back.
  virtual void Rollback(size_t num_tokens) = 0;
  // Another one in the same state, for a second answer to the same prompt.
  virtual std::unique_ptr<Constraint> Fork() const = 0;
};

}  // namespace tq
