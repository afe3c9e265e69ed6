// POST /v1/embeddings.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/token_stream.h"
#include "server/bell.h"
#include "server/fields.h"
#include "server/openai/prompts.h"
#include "server/router.h"

namespace tq::server {
namespace {

constexpr size_t kMaxInputs = 2048;

struct EmbeddingRequest {
  std::vector<std::vector<int32_t>> inputs;
  EmbeddingSettings settings;
  int64_t dimensions = 0;  // 0: all
  bool base64 = false;
};

Result<EmbeddingSettings> SettingsOf(const Call& call) {
  EmbeddingSettings settings = call.model->text().embedding;
  if (const std::optional<Pooling> pooling = call.service.options().embedding_pooling) {
    settings.pooling = *pooling;
    return settings;
  }
  if (call.model->text().embedding_status.ok()) return settings;
  return Unsupported(call.model->text().embedding_status.message());
}

// What has no text would get the vector of the tokens around it.
Status RefuseEmpty(const RequestNode& input) {
  const auto is_empty = [](const OrderedJson& json) {
    return (json.is_string() && json.get_ref<const std::string&>().empty()) ||
           (json.is_array() && json.empty());
  };
  constexpr const char* kWanted = "a text or a list of token ids that is not empty";
  if (is_empty(input.value())) return input.Expected(kWanted);
  if (!input.IsList()) return Status::Ok();
  TQ_ASSIGN_OR_RETURN(const std::vector<RequestNode> list, input.List());
  for (const RequestNode& node : list) {
    if (is_empty(node.value())) return node.Expected(kWanted);
  }
  return Status::Ok();
}

Result<EmbeddingRequest> ReadRequest(const OrderedJson& json, const Call& call) {
  const RequestNode body(json, "");
  EmbeddingRequest request;
  TQ_ASSIGN_OR_RETURN(const std::string format, body["encoding_format"].OptionalText());
  request.base64 = format == "base64";
  if (!request.base64 && !format.empty() && format != "float") {
    return body["encoding_format"].Expected("\"float\" or \"base64\"");
  }
  TQ_ASSIGN_OR_RETURN(const auto dimensions, OptionalInt(body["dimensions"], 1, 1 << 30));
  request.dimensions = dimensions.value_or(0);
  TQ_RETURN_IF_ERROR(RefuseEmpty(body["input"]));
  TQ_ASSIGN_OR_RETURN(request.inputs, ReadPrompts(body["input"], *call.model, kMaxInputs));
  for (const std::vector<int32_t>& ids : request.inputs) {
    if (ids.empty()) return body["input"].Expected("texts that are not empty");
  }
  TQ_ASSIGN_OR_RETURN(request.settings, SettingsOf(call));
  return request;
}

std::optional<ApiError> CheckLengths(const EmbeddingRequest& request, int64_t max_context) {
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const size_t tokens = request.inputs[i].size();
    if (static_cast<int64_t>(tokens) <= max_context) continue;
    return ApiError{400, "invalid_request_error", "context_length_exceeded", "input",
                    fmt::format("This model's maximum context length is {} tokens. Input {} has {} "
                                "tokens; shorten it.",
                                max_context, i, tokens)};
  }
  return std::nullopt;
}

// To length 1; a vector of zeros stays.
void Normalize(std::vector<float>& vector) {
  double sum = 0;
  for (const float value : vector) sum += double{value} * double{value};
  if (sum <= 0) return;
  const double length = std::sqrt(sum);
  for (float& value : vector) value = static_cast<float>(double{value} / length);
}

// Of the floats' bytes, little-endian.
std::string Base64(const std::vector<float>& vector) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<uint8_t> bytes;
  bytes.reserve(vector.size() * 4);
  for (const float value : vector) {
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8)
      bytes.push_back(static_cast<uint8_t>(bits >> shift));
  }
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) bits = bits << 8 | (k < count ? bytes[i + k] : 0u);
    for (size_t k = 0; k < 4; ++k) {
      text += k <= count ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

// The inputs of one request on their way through the engine, a batch of them at a time, so that
// they leave room in its queue. Thread: the exchange's.
class EmbeddingJob : public std::enable_shared_from_this<EmbeddingJob> {
 public:
  EmbeddingJob(const Call& call, EmbeddingRequest request)
      : call_(call), request_(std::move(request)), vectors_(request_.inputs.size()) {}
  ~EmbeddingJob() {
    if (bell_ != nullptr) bell_->Silence();
  }

  void Start() {
    // The exchange keeps this alive until its end.
    call_.exchange->OnClosed([self = shared_from_this()] { self->End("cancelled"); });
    const std::weak_ptr<EmbeddingJob> weak = weak_from_this();
    bell_ = std::make_shared<Bell>(call_.exchange.get(), [weak] {
      if (const auto self = weak.lock()) self->Advance();
    });
    const double seconds = call_.service.options().timeout_seconds;
    if (seconds > 0) {
      const std::chrono::milliseconds limit(static_cast<int64_t>(seconds * 1000));
      call_.exchange->After(limit, [weak, seconds] {
        if (const auto self = weak.lock()) self->Fail(TimeoutError(seconds));
      });
    }
    auto asked = call_.service.pool().Ask(call_.model->index(), [bell = bell_] { bell->Ring(); });
    if (!asked.ok()) return Fail(ErrorOf(asked.status()));
    waiting_ = std::move(asked).value();
    Advance();
  }

 private:
  // Goes on with what there is now.
  void Advance() {
    if (done_) return;
    if (waiting_ != nullptr) Admit();
    if (waiting_ == nullptr) Pump();
  }

  void Admit() {
    std::optional<Result<ModelLease>> lease = waiting_->Take();
    if (!lease) return;
    waiting_.reset();
    if (!lease->ok()) return Fail(ErrorOf(lease->status()));
    lease_ = std::move(*lease).value();
  }

  struct Running {
    size_t input;
    std::shared_ptr<TokenStream> stream;
  };

  void Pump() {
    for (size_t i = 0; i < running_.size() && !done_;) {
      TokenStream& stream = *running_[i].stream;
      stream.TryNext();  // there is nothing to read: it calls again at the end
      if (!stream.at_end()) {
        ++i;
        continue;
      }
      Take(running_[i]);
      running_.erase(running_.begin() + static_cast<ptrdiff_t>(i));
    }
    while (!done_ && next_ < request_.inputs.size() && Submit()) {
    }
    if (!done_ && running_.empty()) Reply();
  }

  // False: not now.
  bool Submit() {
    const auto most = static_cast<size_t>(lease_->options().max_sequences);
    if (running_.size() >= most) return false;
    GenerateRequest request;
    request.prompt = request_.inputs[next_];
    request.pooling = request_.settings.pooling;
    auto stream = lease_->Submit(std::move(request));
    if (!stream.ok()) {
      const bool may_wait = stream.status().code() == StatusCode::kBusy && !running_.empty();
      if (!may_wait) Fail(ErrorOf(stream.status()));
      return false;
    }
    (*stream)->SetListener([bell = bell_] { bell->Ring(); });
    running_.push_back({next_++, std::move(stream).value()});
    return true;
  }

  void Take(const Running& running) {
    const TokenStream& stream = *running.stream;
    if (stream.finish_reason() == FinishReason::kError) return Fail(ErrorOf(stream.status()));
    if (stream.finish_reason() != FinishReason::kStop) {
      return Fail(StoppingError());
    }
    call_.service.metrics().CountAnswer(call_.model->name(), "stop", stream.stats());
    std::vector<float>& vector = vectors_[running.input];
    vector = stream.embedding();
    const auto size = static_cast<int64_t>(vector.size());
    if (request_.dimensions > size) {
      return Fail({400, "invalid_request_error", "", "dimensions",
                   fmt::format("dimensions: expected a whole number from 1 to {}, found {}", size,
                               request_.dimensions)});
    }
    if (request_.dimensions > 0) vector.resize(static_cast<size_t>(request_.dimensions));
    if (request_.settings.normalize || request_.dimensions > 0) Normalize(vector);
  }

  void Reply() {
    std::string body = R"({"object":"list","data":[)";
    for (size_t i = 0; i < vectors_.size(); ++i) {
      fmt::format_to(std::back_inserter(body),
                     R"({}{{"object":"embedding","index":{},"embedding":)", i > 0 ? "," : "", i);
      if (request_.base64) {
        fmt::format_to(std::back_inserter(body), R"("{}"}})", Base64(vectors_[i]));
      } else {
        // As short as a float allows.
        fmt::format_to(std::back_inserter(body), "[{}]}}", fmt::join(vectors_[i], ","));
      }
    }
    size_t tokens = 0;
    for (const std::vector<int32_t>& ids : request_.inputs) tokens += ids.size();
    fmt::format_to(std::back_inserter(body),
                   R"(],"model":{},"usage":{{"prompt_tokens":{},"total_tokens":{}}}}})",
                   Dump(call_.model_name), tokens, tokens);
    End("stop");
    call_.Reply(HttpResponse{.body = std::move(body)});
  }

  void Fail(const ApiError& error) {
    if (done_) return;
    End("error");
    call_.Fail(error);
  }

  void End(std::string_view outcome) {
    if (done_) return;
    done_ = true;
    for (const Running& running : running_) {
      running.stream->Cancel();
      call_.service.metrics().CountAnswer(call_.model->name(), outcome, running.stream->stats());
    }
    call_.service.log().Write(LogLevel::kInfo, "embeddings",
                              {{"id", call_.request_id},
                               {"outcome", std::string(outcome)},
                               {"inputs", fmt::to_string(request_.inputs.size())}});
    waiting_.reset();
    lease_.reset();
  }

  const Call call_;
  const EmbeddingRequest request_;
  std::vector<std::vector<float>> vectors_;  // of the inputs
  std::unique_ptr<LeaseRequest> waiting_;    // until the model is there
  ModelLease lease_;
  std::vector<Running> running_;
  size_t next_ = 0;  // input to submit
  std::shared_ptr<Bell> bell_;
  bool done_ = false;
};

}  // namespace

void Embeddings(const Call& call) {
  const std::optional<ModelCall> opened = OpenModelCall(call);
  if (!opened) return;
  const Call& to_model = opened->call;
  auto request = ReadRequest(opened->body, to_model);
  if (!request.ok()) return to_model.Fail(request.status());
  const int64_t max_context = to_model.model->max_context();
  if (const auto error = CheckLengths(*request, max_context)) return to_model.Fail(*error);
  std::make_shared<EmbeddingJob>(to_model, std::move(request).value())->Start();
}

}  // namespace tq::server
