// Decoder: token contents -> text, as a chain of stages that work while the tokens come. A stage
// gets the text of a token in fragments of whole characters, then the token's end; what it cannot
// judge yet it holds back. Decoders are immutable and used from any thread; stages belong to one
// stream.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace tq::tok {

class DecodeStage {
 public:
  virtual ~DecodeStage() = default;
  virtual void Text(std::string_view fragment) = 0;
  virtual void EndToken() = 0;
  virtual void Finish() = 0;  // comes once, after an EndToken
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  // The stage hands on to `next`, which outlives it.
  virtual std::unique_ptr<DecodeStage> Start(DecodeStage* next) const = 0;
  // What the text of one token stands for, wherever it occurs.
  virtual std::string TokenBytes(std::string token) const = 0;
  // How many times longer a token's text may get.
  virtual double Growth() const = 0;
};

using DecoderChain = std::vector<std::unique_ptr<Decoder>>;

// json null: tokens are joined with spaces. Errors: kCorrupt, kUnsupported naming the type.
Result<DecoderChain> MakeDecoderChain(const Json& json, const std::string& where);

}  // namespace tq::tok
