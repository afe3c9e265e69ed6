// Glu and Map: the functions of feed-forward layers and gates, element by element.
#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/highway_targets.h"
#include "backend/ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/activation.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "backend/cpu/kernels/vec_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace tq {
namespace HWY_NAMESPACE {
namespace {

struct IdentityFn {
  HWY_INLINE Vec operator()(VecTag, Vec x) const { return x; }
};
struct SigmoidFn {
  HWY_INLINE Vec operator()(VecTag d, Vec x) const { return VecSigmoid(d, x); }
};
struct SoftplusFn {
  HWY_INLINE Vec operator()(VecTag d, Vec x) const { return VecSoftplus(d, x); }
};
struct SiluFn {
  HWY_INLINE Vec operator()(VecTag d, Vec x) const { return VecSilu(d, x); }
};
struct GeluTanhFn {
  HWY_INLINE Vec operator()(VecTag d, Vec x) const { return VecGeluTanh(d, x); }
};
struct Relu2Fn {
  HWY_INLINE Vec operator()(VecTag d, Vec x) const {
    const Vec y = VecRelu(d, x);
    return hn::Mul(y, y);
  }
};

// act(gate) * up.
template <class Fn>
struct Gate {
  HWY_INLINE Vec operator()(VecTag d, Vec gate, Vec up) const { return hn::Mul(Fn()(d, gate), up); }
};

struct ClampedSilu {
  float alpha;
  float limit;
  HWY_INLINE Vec operator()(VecTag d, Vec gate, Vec up) const {
    const Vec high = hn::Set(d, limit);
    const Vec g = hn::IfThenElse(hn::Gt(gate, high), high, gate);
    const Vec u = VecLimit(up, hn::Set(d, -limit), high);
    return hn::Mul(hn::Add(u, hn::Set(d, 1.0f)),
                   hn::Mul(g, VecSigmoid(d, hn::Mul(hn::Set(d, alpha), g))));
  }
};

struct Situ {
  float alpha;
  float limit;
  HWY_INLINE Vec operator()(VecTag d, Vec gate, Vec up) const {
    const Vec a = hn::Set(d, alpha);
    const Vec g = hn::Mul(hn::Mul(a, VecTanh(d, hn::Div(gate, a))), VecSigmoid(d, gate));
    if (limit == 0.0f) return hn::Mul(g, up);
    const Vec bound = hn::Set(d, limit);
    return hn::Mul(g, hn::Mul(bound, VecTanh(d, hn::Div(up, bound))));
  }
};

// The steps of Map around `Fn`, for one row.
template <class Fn>
HWY_INLINE void MapRowWith(const MapArgs& args, int64_t row) {
  const VecTag d;
  const float* x = args.x + row * args.x_stride;
  float* out = args.out + row * args.n;
  const Vec scale = hn::Set(d, args.scale);
  const Vec low = hn::Set(d, args.low), high = hn::Set(d, args.high);
  const auto step = [&](Vec y, const auto& load) HWY_ATTR {
    if (args.bias != nullptr) y = hn::Add(y, load(args.bias));
    if (args.pre != nullptr) y = hn::Mul(y, load(args.pre));
    y = Fn()(d, y);
    if (args.post != nullptr) y = hn::Mul(y, load(args.post));
    return VecLimit(hn::Mul(y, scale), low, high);
  };
  int64_t c = 0;
  for (; c + kLanes <= args.n; c += kLanes) {
    const auto load = [&](const float* p) HWY_ATTR { return hn::LoadU(d, p + c); };
    hn::StoreU(step(load(x), load), d, out + c);
  }
  if (c == args.n) return;
  const size_t rest = static_cast<size_t>(args.n - c);
  const auto load = [&](const float* p) HWY_ATTR { return LoadPart(d, p + c, rest); };
  StorePart(step(load(x), load), d, out + c, rest);
}

}  // namespace

void Glu(const GluArgs& args, int64_t begin, int64_t end) {
  const auto run = [&](const auto& op) HWY_ATTR {
    ForVectors(end - begin, args.out + begin, op, args.gate + begin, args.up + begin);
  };
  switch (args.activation) {
    case Activation::kSilu:
      return run(Gate<SiluFn>());
    case Activation::kGeluTanh:
      return run(Gate<GeluTanhFn>());
    case Activation::kSigmoid:
      return run(Gate<SigmoidFn>());
    case Activation::kSoftplus:
      return run(Gate<SoftplusFn>());
    case Activation::kClampedSilu:
      return run(ClampedSilu{args.alpha, args.limit});
    case Activation::kSitu:
      return run(Situ{args.alpha, args.limit});
  }
}

void MapRow(const MapArgs& args, int64_t row) {
  switch (args.fn) {
    case MapFn::kIdentity:
      return MapRowWith<IdentityFn>(args, row);
    case MapFn::kSigmoid:
      return MapRowWith<SigmoidFn>(args, row);
    case MapFn::kSoftplus:
      return MapRowWith<SoftplusFn>(args, row);
    case MapFn::kSilu:
      return MapRowWith<SiluFn>(args, row);
    case MapFn::kRelu2:
      return MapRowWith<Relu2Fn>(args, row);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tq
HWY_AFTER_NAMESPACE();
