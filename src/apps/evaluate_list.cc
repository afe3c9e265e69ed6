#include "apps/evaluate_list.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "apps/evaluate_row.h"
#include "apps/output.h"
#include "apps/task_file.h"
#include "base/file.h"
#include "quantize/convert.h"
#include "quantize/recipe.h"

namespace tq {
namespace {

// A folder that goes away with it.
class ScratchFolder {
 public:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Conversion {
  std::string name;
  QuantizeSettings settings;
};

Result<std::vector<Conversion>> Conversions(const EvaluateListFlags& flags) {
  std::vector<Conversion> all;
  QuantizeSettings base;
  base.group_size = flags.group_size;
  const auto add = [&](const QuantizeSettings& settings) -> Status {
    TQ_RETURN_IF_ERROR(settings.Validate());
    all.push_back({RecipeName(settings), settings});
    return Status::Ok();
  };
  for (const int bits : flags.bits) {
    QuantizeSettings settings = base;
    settings.bits = bits;
    TQ_RETURN_IF_ERROR(add(settings));
  }
  for (const std::string& text : flags.recipes) {
    Result<Recipe> recipe = ParseRecipe(text);
    if (!recipe.ok()) return recipe.status().WithContext("--recipe");
    TQ_RETURN_IF_ERROR(add(WithRecipe(base, *recipe)));
  }
  return all;
}

int64_t StoredBytes(const WeightSource& source) {
  int64_t bytes = 0;
  for (const SourceTensor& tensor : source.tensors()) {
    bytes += static_cast<int64_t>(tensor.bytes.size());
  }
  return bytes;
}

// 0 where the elements of a tensor are no weights: packed codes.
int64_t CountWeights(const WeightSource& source) {
  int64_t count = 0;
  for (const SourceTensor& tensor : source.tensors()) {
    if (!tensor.is_float_like) return 0;
    int64_t elements = 1;
    for (const int64_t size : tensor.shape) elements *= size;
    count += elements;
  }
  return count;
}

class ListRunner {
 public:
  ListRunner(const EvaluateListFlags& flags, const EvaluateListInput& input,
             const CommonFlags& common, const Console& console, const std::atomic<bool>& cancel)
      : flags_(flags), input_(input), common_(common), console_(console), cancel_(cancel) {}

  Status Run() {
    TQ_ASSIGN_OR_RETURN(const std::vector<Conversion> conversions, Conversions(flags_));
    if (!input_.reference.empty()) {
      TQ_ASSIGN_OR_RETURN(reference_, OpenSession(input_.reference, common_, console_));
      TQ_RETURN_IF_ERROR(AddRow(NameOf(input_.reference), *reference_,
                                CountWeights(reference_->source()), Clock::now()));
    }
    if (!input_.model.empty()) {
      const Clock::time_point start = Clock::now();
      TQ_ASSIGN_OR_RETURN(const auto session, OpenSession(input_.model, common_, console_));
      TQ_RETURN_IF_ERROR(
          AddRow(NameOf(input_.model), *session, CountWeights(session->source()), start));
    }
    for (const Conversion& conversion : conversions) TQ_RETURN_IF_ERROR(AddConversion(conversion));
    return Status::Ok();
  }

  const std::vector<EvaluateRow>& rows() const { return rows_; }

 private:
  using Clock = std::chrono::steady_clock;

  static std::string NameOf(const std::string& path) {
    const std::string name = std::filesystem::path(path + "/").parent_path().filename().string();
    return name.empty() ? path : name;
  }

  std::function<void(int64_t, int64_t)> Updates(ProgressBar& bar) {
    return [&bar](int64_t done, int64_t total) { bar.Update(done, total); };
  }

  Status AddConversion(const Conversion& conversion) {
    const Clock::time_point start = Clock::now();
    std::error_code error;
    std::filesystem::path parent = flags_.work_dir;
    if (parent.empty()) parent = std::filesystem::temp_directory_path(error);
    if (error) return IoError("--work-dir: there is no folder for temporary files: name one");
    const ScratchFolder folder(
        (parent / fmt::format("turboquant-{}-{}", ::getpid(), conversion.name)).string());
    ConvertOptions options;
    options.settings = conversion.settings;
    options.num_threads = common_.threads;
    options.cancel = &cancel_;
    ProgressBar bar(console_, conversion.name + ": converting", HumanCount, " weights");
    options.progress = Updates(bar);
    const Result<ConvertReport> report = Convert(reference_->source(), folder.path(), options);
    bar.Erase();
    if (!report.ok()) return report.status().WithContext(conversion.name);
    TQ_ASSIGN_OR_RETURN(const auto session, OpenSession(folder.path(), common_, console_));
    return AddRow(conversion.name, *session, report->total_weights, start);
  }

  Status AddRow(const std::string& name, ModelSession& session, int64_t weights,
                Clock::time_point start) {
    std::vector<KvSettings> caches = {KvSettings(session.kv().exact)};
    caches.insert(caches.end(), input_.kv.begin(), input_.kv.end());
    for (const KvSettings& kv : caches) {
      session.set_kv(kv);
      EvaluateRow row;
      row.name = name;
      row.bytes = StoredBytes(session.source());
      row.weights = weights;
      row.exact_kv = &kv == caches.data();
      if (caches.size() > 1) {
        row.kv = KvSettingsText(kv);
        row.kv_bytes_per_token = static_cast<double>(session.kv_bytes_per_token());
      }
      if (!input_.text.empty()) TQ_RETURN_IF_ERROR(MeasureText(session, row));
      if (!flags_.tasks.empty()) TQ_RETURN_IF_ERROR(MeasureTasks(session, row));
      row.seconds = std::chrono::duration<double>(Clock::now() - start).count();
      rows_.push_back(std::move(row));
      start = Clock::now();
    }
    session.set_kv(caches.front());
    return Status::Ok();
  }

  Status MeasureText(ModelSession& session, EvaluateRow& row) {
    if (ids_.empty()) {
      TQ_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(input_.text));
      TQ_RETURN_IF_ERROR(CheckUtf8(text, input_.text));
      TQ_ASSIGN_OR_RETURN(const TextAssets* assets, session.LoadText());
      TQ_ASSIGN_OR_RETURN(const Tokenizer* tokenizer, NeedTokenizer(*assets));
      ids_ = tokenizer->Encode(JoinNonBlankLines(text), {.add_special_tokens = true});
    }
    ProgressBar bar(console_, row.name + ": reading", HumanCount, " tokens");
    PerplexityOptions options;
    options.seq_len = input_.seq_len;
    options.num_samples = input_.num_samples;
    options.kv = session.kv();
    options.reference_kv = KvSettings(session.kv().exact);
    options.cancel = &cancel_;
    options.progress = Updates(bar);
    if (reference_ == nullptr || (&session == reference_.get() && row.exact_kv)) {
      TQ_ASSIGN_OR_RETURN(const PerplexityReport report,
                          Perplexity(session.model(), session.backend(), ids_, options));
      row.perplexity = report.perplexity;
      return Status::Ok();
    }
    TQ_ASSIGN_OR_RETURN(const DivergenceReport report,
                        Divergence(session.model(), session.backend(), reference_->model(),
                                   reference_->backend(), ids_, options));
    row.perplexity = report.perplexity;
    row.kl = report.kl;
    row.top1_agreement = report.top1_agreement;
    return Status::Ok();
  }

  Status MeasureTasks(ModelSession& session, EvaluateRow& row) {
    TQ_ASSIGN_OR_RETURN(const TextAssets* assets, session.LoadText());
    TQ_ASSIGN_OR_RETURN(const std::vector<Task> tasks,
                        ReadTaskFile(flags_.tasks, *assets, flags_.task_every));
    int64_t longest = 0;
    for (const Task& task : tasks) {
      longest = std::max(longest, static_cast<int64_t>(task.prompt.size()));
    }
    const int64_t most = session.model().spec().max_position_embeddings;
    EngineOptions options;
    options.max_context = std::min(longest + flags_.task_tokens, most);
    // Most prompts are shorter than the longest; a request that finds no page waits.
    options.kv_tokens = options.max_context * std::min<int64_t>(flags_.task_batch, 4);
    options.max_sequences = static_cast<int>(flags_.task_batch);
    TQ_ASSIGN_OR_RETURN(Engine * engine, session.StartEngine(options));
    ProgressBar bar(console_, row.name + ": tasks", HumanCount, " tasks");
    TaskOptions task_options;
    task_options.max_tokens = flags_.task_tokens;
    task_options.end_ids = assets->end_ids;
    task_options.cancel = &cancel_;
    task_options.progress = Updates(bar);
    TQ_ASSIGN_OR_RETURN(row.tasks, ScoreTasks(*engine, *assets->tokenizer, tasks, task_options));
    bar.Erase();
    if (common_.verbose) PrintMisses(row, tasks);
    return Status::Ok();
  }

  void PrintMisses(const EvaluateRow& row, const std::vector<Task>& tasks) const {
    for (const TaskReport::Miss& miss : row.tasks->misses) {
      const OrderedJson said = miss.said;
      const OrderedJson expected = tasks[miss.task].answer;
      const auto dump = [](const OrderedJson& json) {
        return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
      };
      PrintNote(console_, fmt::format("{}: {}: expected {}, said {}", row.name,
                                      tasks[miss.task].kind, dump(expected), dump(said)));
    }
  }

  const EvaluateListFlags& flags_;
  const EvaluateListInput& input_;
  const CommonFlags& common_;
  const Console& console_;
  const std::atomic<bool>& cancel_;
  std::unique_ptr<ModelSession> reference_;
  std::vector<int32_t> ids_;  // of the text
  std::vector<EvaluateRow> rows_;
};

Status CheckInput(const EvaluateListFlags& flags, const EvaluateListInput& input) {
  const bool converts = !flags.bits.empty() || !flags.recipes.empty();
  if (converts && input.reference.empty()) {
    return InvalidArgument(
        "--bits, --recipe: expected --reference with the checkpoint to convert, found none");
  }
  if (flags.tasks.empty() && input.text.empty()) {
    return InvalidArgument("expected --text or --tasks to measure with, found none");
  }
  if (input.model.empty() && input.reference.empty()) {
    return InvalidArgument("--tasks: expected --model or --reference with it, found none");
  }
  return Status::Ok();
}

}  // namespace

void AddEvaluateListFlags(CLI::App& app, EvaluateListFlags& flags) {
  constexpr const char* kGroup = "Lists";
  app.add_option("--tasks", flags.tasks,
                 "Task suite, a JSON object a line: share of exact answers, greedy")
      ->group(kGroup);
  app.add_option("--task-every", flags.task_every, "Only every n-th task")
      ->check(InRange(int64_t{1}, int64_t{1} << 30))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--task-tokens", flags.task_tokens, "Length of an answer, its thought included")
      ->check(InRange(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--task-batch", flags.task_batch, "Tasks at once (same answers)")
      ->check(InRange(int64_t{1}, int64_t{256}))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--bits", flags.bits, "Also --reference converted to these widths: 2,3,4")
      ->delimiter(',')
      ->check(CLI::IsMember({2, 3, 4}))
      ->group(kGroup);
  app.add_option("--recipe", flags.recipes,
                 "Also --reference converted by these recipes: tq3-g64,tq3a-tqTe")
      ->delimiter(',')
      ->group(kGroup);
  app.add_option("--group-size", flags.group_size, "Weights that share a scale in these")
      ->check(CLI::IsMember({32, 64, 128}))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--work-dir", flags.work_dir,
                 "Where conversions are while they are measured [the system's temporary folder]")
      ->check(CLI::ExistingDirectory)
      ->group(kGroup);
  app.add_option("--svg", flags.svg, "Also write a plot of quality by size to this file")
      ->group(kGroup);
}

Status RunEvaluateList(const EvaluateListFlags& flags, const EvaluateListInput& input,
                       const CommonFlags& common, Interrupts& interrupts) {
  const Console console = MakeConsole(common.quiet);
  TQ_RETURN_IF_ERROR(CheckInput(flags, input));
  std::atomic<bool> cancel{false};
  const Interrupts::Scope scope(interrupts, [&cancel] { cancel = true; });
  ListRunner runner(flags, input, common, console, cancel);
  TQ_RETURN_IF_ERROR(runner.Run());
  if (!flags.svg.empty()) {
    TQ_RETURN_IF_ERROR(WriteFile(flags.svg, WriteSvg(RowsPlot(runner.rows()))));
  }
  if (common.json) {
    OrderedJson json = {{"rows", RowsJson(runner.rows())}, {"activations", common.activations}};
    if (!input.text.empty()) json["text"] = input.text;
    if (!input.text.empty()) json["seq_len"] = input.seq_len;
    if (!flags.tasks.empty()) json["tasks"] = flags.tasks;
    return WriteJson(json);
  }
  return WriteOut(RowsTable(runner.rows()));
}

}  // namespace tq
