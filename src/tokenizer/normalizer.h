// Normalizer: rewrites a text before it is cut. Immutable; any thread.
#pragma once

#include <memory>
#include <string>

#include "base/json.h"
#include "base/status.h"

namespace tq::tok {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // at_start: whether the text begins where the whole input does; a normalizer that takes leading
  // characters away clears it.
  virtual void Apply(std::string* text, bool* at_start) const = 0;
  // How many times longer the text may get.
  virtual double Growth() const = 0;
};

// Factories with a file of their own; the others are in normalizer.cc.
Result<std::unique_ptr<Normalizer>> MakeBertNormalizer(const Json& json, const std::string& where);
Result<std::unique_ptr<Normalizer>> MakePrecompiled(const Json& json, const std::string& where);

// Errors: kCorrupt, kUnsupported naming the type.
Result<std::unique_ptr<Normalizer>> MakeNormalizer(const Json& json, const std::string& where);

}  // namespace tq::tok
