#include "quantize/sequential_rounding.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "codec/codec.h"
#include "codec/hadamard.h"
#include "model/model.h"
#include "quantize/bit_allocation.h"
#include "quantize/ldlq.h"
#include "quantize/override_backend.h"
#include "quantize/stage_inputs.h"
#include "quantize/target_weights.h"
#include "weights/matrix_tensors.h"

namespace tq {
namespace {

// Of the correction that the samples ask for: the whole of it fits them at the cost of other text.
constexpr float kShare = 0.5f;

class Rounder {
 public:
  Rounder(const WeightSource& source, Backend& backend, const SequentialOptions& options)
      : source_(source), options_(options), backend_(backend), pool_(options.num_threads) {}

  Status Prepare(const std::vector<ConvertItem>& items, const HessianFile& calibration) {
    TQ_ASSIGN_OR_RETURN(model_, Model::Load(source_, backend_));
    if (!model_->blocks_stand_alone()) {
      return Unsupported(source_.path() +
                         ": sequential rounding: expected layers that read the residual alone, "
                         "found layers that read earlier ones: convert without --sequential");
    }
    samples_ = calibration.Samples();
    const auto tokens = static_cast<int64_t>(samples_.front().size());
    TQ_ASSIGN_OR_RETURN(KvCache cache,
                        KvCache::Create(model_->Needs(KvFormat::kF32), KvCache::PagesFor(tokens), 1));
    cache_.emplace(std::move(cache));
    TQ_CHECK(cache_->Allocate(cache_->num_pages(), pages_));
    std::map<std::string, const Weight*> weights;
    for (const Model::NamedWeight& named : model_->Weights()) weights[named.name] = named.weight;
    for (const ConvertItem& item : items) {
      if (!item.quantize || !item.measured || item.heads || item.cols % InputSums::kPanel != 0) {
        continue;
      }
      for (const std::string& path : item.sources) {
        const auto found = weights.find(path);
        if (found != weights.end()) jobs_[path] = {&item, path, found->second};
      }
    }
    original_.resize(samples_.size());
    for (size_t s = 0; s < samples_.size(); ++s) {
      original_[s].resize(samples_[s].size() * static_cast<size_t>(model_->residual_width()));
      const StepPlan plan = PlanOf(samples_[s]);
      StepContext step{backend_, scratch_, plan, nullptr, {}, nullptr, nullptr};
      backend_.BeginPass(false, OverrideBackend::Routes::kRecord);
      model_->EmbedTokens(step, original_[s].data());
      scratch_.Reset();
    }
    rounded_ = original_;
    return Status::Ok();
  }

  size_t num_blocks() const { return model_->spec().blocks.size(); }

  // done: the block's matrices when an earlier run rounded them.
  Result<std::map<std::string, RoundedMatrix>> RoundBlock(size_t block, const RoundedStore* done) {
    block_ = block;
    matrices_.clear();
    StageLister lister(jobs_);
    std::vector<float> x = original_.front();
    Run(samples_.front(), false, x, &lister);
    const std::vector<StageInput>& inputs = lister.inputs;
    for (size_t begin = 0; begin < inputs.size();) {
      size_t end = begin + 1;
      int64_t bytes = inputs[begin].sum_bytes();
      while (end < inputs.size() &&
             KindOfPath(inputs[end].name) == KindOfPath(inputs[begin].name) &&
             bytes + inputs[end].sum_bytes() <= options_.memory_bytes) {
        bytes += inputs[end++].sum_bytes();
      }
      const Stage stage = std::span(inputs).subspan(begin, end - begin);
      if (done != nullptr) {
        TQ_RETURN_IF_ERROR(TakeStage(stage, *done));
      } else {
        TQ_RETURN_IF_ERROR(RoundStage(stage));
      }
      begin = end;
    }
    for (size_t s = 0; s < samples_.size(); ++s) {
      TQ_RETURN_IF_ERROR(CheckCancel());
      Run(samples_[s], false, original_[s], nullptr);
      Run(samples_[s], true, rounded_[s], nullptr);
    }
    backend_.ForgetReplacements();
    return std::move(matrices_);
  }

 private:
  StepPlan PlanOf(const std::vector<int32_t>& ids) const {
    StepPlan plan;
    plan.ids = ids;
    plan.positions.resize(ids.size());
    std::iota(plan.positions.begin(), plan.positions.end(), 0);
    plan.sequences.push_back({.first_token = 0,
                              .num_tokens = static_cast<int64_t>(ids.size()),
                              .start_position = 0,
                              .pages = pages_});
    return plan;
  }

  // x: through the block, in place.
  void Run(const std::vector<int32_t>& ids, bool rounded, std::vector<float>& x,
           InputObserver* observer) {
    using Routes = OverrideBackend::Routes;
    backend_.BeginPass(rounded, rounded ? Routes::kReplay : Routes::kRecord);
    const StepPlan plan = PlanOf(ids);
    StepContext step{backend_, scratch_, plan, nullptr, {}, observer, nullptr};
    model_->ForwardBlock(step, *cache_, block_, x.data());
    scratch_.Reset();
  }

  Status CheckCancel() const {
    if (options_.cancel == nullptr || !options_.cancel->load()) return Status::Ok();
    return ConversionStopped(options_.resume);
  }

  Status RoundStage(Stage stage) {
    StageGatherer gatherer(stage, model_->residual_width(), backend_, pool_);
    std::vector<float> x;
    for (size_t s = 0; s < samples_.size(); ++s) {
      TQ_RETURN_IF_ERROR(CheckCancel());
      for (const bool rounded : {false, true}) {
        x = rounded ? rounded_[s] : original_[s];
        gatherer.BeginPass(!rounded);
        Run(samples_[s], rounded, x, &gatherer);
      }
    }
    for (const StageInput& input : stage) {
      StageSums& sums = gatherer.Sums(input);
      sums.squares.Finish();
      TQ_RETURN_IF_ERROR(RoundInput(input, sums));
    }
    return Status::Ok();
  }

  Status RoundInput(const StageInput& input, StageSums& sums) {
    const int64_t tokens = sums.squares.rows();
    if (tokens == 0) return Status::Ok();
    const double damping = LdlqDamping(input.cols, tokens);
    {
      const InputNormalizer normalizer(sums.squares.squares(), input.cols, damping, pool_);
      normalizer.Apply(sums.inputs, pool_);
      if (sums.has_residual) normalizer.Apply(sums.residual, pool_);
    }
    for (float& value : sums.inputs) value *= kShare;
    for (float& value : sums.residual) value *= kShare;
    std::unique_ptr<const Ldlq> ldlq;
    const TurboQuantSpec* spec = nullptr;
    std::vector<float> signs;
    for (const RoundingJob& job : input.jobs) {
      const TurboQuantSpec& wanted = job.item->spec;
      if (spec == nullptr || spec->seed != wanted.seed || spec->group != wanted.group ||
          spec->rotate != wanted.rotate || spec->codebook_entries != wanted.codebook_entries) {
        spec = &wanted;
        signs = spec->rotate ? TurboQuantSigns(spec->seed, input.cols)
                             : std::vector<float>(static_cast<size_t>(input.cols), 1.0f);
        ldlq = std::make_unique<Ldlq>(*spec, signs, sums.squares.squares(),
                                      LdlqOptions{.damping = damping}, pool_);
      }
      TQ_ASSIGN_OR_RETURN(RoundedMatrix matrix, RoundMatrix(job, *ldlq, sums));
      TQ_RETURN_IF_ERROR(Replace(job, signs, matrix.words, matrix.scales));
      matrices_[job.path] = std::move(matrix);
      if (options_.progress) options_.progress(job.item->rows * job.item->cols);
    }
    return Status::Ok();
  }

  Result<RoundedMatrix> RoundMatrix(const RoundingJob& job, const Ldlq& ldlq,
                                    const StageSums& corrections) {
    const ConvertItem& item = *job.item;
    TQ_ASSIGN_OR_RETURN(const MatrixTensors stored,
                        ReadMatrix(source_, job.path, item.rows, item.cols, false));
    const int64_t words = TurboQuantWords(item.spec.codebook_entries, item.cols);
    const int64_t groups = item.cols / item.spec.group;
    RoundedMatrix out;
    out.words.resize(static_cast<size_t>(item.rows * words));
    out.scales.resize(static_cast<size_t>(item.rows * groups));
    std::atomic<bool> finite{true};
    constexpr int64_t kTile = Ldlq::kTileRows;
    pool_.ParallelFor(item.rows, kTile, [&](int64_t begin, int64_t end, int) {
      LdlqScratch scratch;
      std::vector<float> rows(static_cast<size_t>(kTile * item.cols));
      std::vector<float> transposed;
      for (int64_t row = begin; row < end; row += kTile) {
        const int64_t n = std::min(kTile, end - row);
        std::fill(rows.begin(), rows.end(), 0.0f);
        for (int64_t r = 0; r < n; ++r) {
          DecodeRow(stored.matrix, row + r, 0, item.cols, rows.data() + r * item.cols);
        }
        ApplyCorrection(corrections.inputs, item.cols, rows.data(), kTile, transposed);
        if (corrections.has_residual) {
          const float* more = corrections.residual.data() + row * item.cols;
          for (int64_t i = 0; i < n * item.cols; ++i) rows[static_cast<size_t>(i)] += more[i];
        }
        if (!ldlq.EncodeTile(rows.data(), n, out.words.data() + row * words,
                             out.scales.data() + row * groups, scratch)) {
          finite = false;
        }
      }
    });
    for (const SourceTensor* part : stored.parts) source_.DropPages(*part);
    if (finite) return out;
    return Corrupt(fmt::format(
        "tensor {}.weight: expected finite weights below 65504, found NaN, infinity or larger",
        job.path));
  }

  Status TakeStage(Stage stage, const RoundedStore& done) {
    for (const StageInput& input : stage) {
      for (const RoundingJob& job : input.jobs) {
        const RoundedStore::View* view = done.Find(job.path);
        if (view == nullptr) continue;
        const TurboQuantSpec& spec = job.item->spec;
        const std::vector<float> signs =
            spec.rotate ? TurboQuantSigns(spec.seed, input.cols)
                        : std::vector<float>(static_cast<size_t>(input.cols), 1.0f);
        TQ_RETURN_IF_ERROR(Replace(job, signs, std::as_bytes(view->words), view->scales));
        if (options_.progress) options_.progress(job.item->rows * job.item->cols);
      }
    }
    return Status::Ok();
  }

  Status Replace(const RoundingJob& job, const std::vector<float>& signs,
                 std::span<const uint32_t> words, std::span<const uint16_t> scales) {
    return Replace(job, signs, std::as_bytes(words), std::as_bytes(scales));
  }

  // From now on the rounded model has it.
  Status Replace(const RoundingJob& job, const std::vector<float>& signs,
                 std::span<const std::byte> words, std::span<const std::byte> scales) {
    const ConvertItem& item = *job.item;
    StoredMatrix codes;
    codes.format = {.codec = CodecId::kTurboQuant,
                    .group = item.spec.group,
                    .transform = item.spec.rotate ? Transform::kHadamard : Transform::kNone};
    codes.rows = item.rows;
    codes.cols = item.cols;
    codes.data = words.data();
    codes.row_bytes = TurboQuantWords(item.spec.codebook_entries, item.cols) * 4;
    codes.scales = scales.data();
    codes.codebook = LloydMaxCodebook(item.spec.codebook_entries).stored;
    codes.signs = signs;
    const std::vector<float> values = MatrixFloats(codes);
    StoredMatrix dense;
    dense.format = {.codec = CodecId::kF32, .bits = 32};
    dense.rows = item.rows;
    dense.cols = item.cols;
    dense.data = std::as_bytes(std::span(values)).data();
    dense.row_bytes = item.cols * static_cast<int64_t>(sizeof(float));
    TQ_ASSIGN_OR_RETURN(auto weight, backend_.Prepare(dense));
    backend_.Replace(job.weight, std::move(weight));
    return Status::Ok();
  }

  const WeightSource& source_;
  const SequentialOptions& options_;
  OverrideBackend backend_;
  ThreadPool pool_;
  std::unique_ptr<const Model> model_;
  std::optional<KvCache> cache_;
  std::vector<int32_t> pages_;
  Scratch scratch_;
  RoundingJobs jobs_;
  std::vector<std::vector<int32_t>> samples_;
  std::vector<std::vector<float>> original_;  // residuals of each sample before the block
  std::vector<std::vector<float>> rounded_;
  size_t block_ = 0;
  std::map<std::string, RoundedMatrix> matrices_;  // of the block
};

}  // namespace

Result<std::unique_ptr<SequentialResult>> RoundSequentially(const WeightSource& source,
                                                            const std::vector<ConvertItem>& items,
                                                            const HessianFile& calibration,
                                                            Backend& backend, WorkFolder& folder,
                                                            const SequentialOptions& options) {
  Rounder rounder(source, backend, options);
  TQ_RETURN_IF_ERROR(rounder.Prepare(items, calibration));
  auto out = std::make_unique<SequentialResult>();
  for (size_t block = 0; block < rounder.num_blocks(); ++block) {
    const std::string name = fmt::format("rounded-{:05}.safetensors", block);
    const std::string file = folder.path() + "/" + name;
    const bool finished = folder.IsFinished(name);
    if (finished) TQ_RETURN_IF_ERROR(out->store.Open(file));
    TQ_ASSIGN_OR_RETURN(const auto matrices,
                        rounder.RoundBlock(block, finished ? &out->store : nullptr));
    if (!finished) {
      TQ_RETURN_IF_ERROR(RoundedStore::Write(file, matrices));
      TQ_RETURN_IF_ERROR(folder.SetFinished(name));
      TQ_RETURN_IF_ERROR(out->store.Open(file));
    }
    out->files.push_back(name);
  }
  return out;
}

}  // namespace tq
