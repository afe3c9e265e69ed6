#include "apps/bench_report.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/output.h"
#include "apps/terminal.h"

namespace tq {
namespace {

// Ops below this share of a step are not worth a line.
constexpr double kSmallestShare = 0.001;

OrderedJson RowJson(const BenchRow& row) {
  OrderedJson json = {{"phase", row.phase},
                      {"batch", row.batch},
                      {"depth", row.depth},
                      {"tokens", row.tokens},
                      {"seconds", row.seconds},
                      {"tokens_per_second", static_cast<double>(row.tokens) / row.seconds},
                      {"weight_bytes_per_second", row.weight_bytes_per_second}};
  if (row.ops.empty()) return json;
  json["ops"] = OrderedJson::array();
  for (const OpShare& op : row.ops) {
    json["ops"].push_back({{"name", op.name}, {"share", op.share}, {"calls", op.calls}});
  }
  return json;
}

std::string OpsText(const BenchReport& report) {
  std::string text;
  for (const BenchRow& row : report.rows) {
    if (row.ops.empty()) continue;
    text += fmt::format("\n{} batch {} depth {}:", row.phase, row.batch, row.depth);
    double rest = 1;
    for (const OpShare& op : row.ops) {
      if (op.share < kSmallestShare) continue;
      text += fmt::format("  {} {:.1f} %", op.name, 100 * op.share);
      rest -= op.share;
    }
    text += fmt::format("  between them {:.1f} %", 100 * rest);
  }
  return text.empty() ? text : text + "\n";
}

}  // namespace

OrderedJson BenchJson(const BenchReport& report) {
  OrderedJson json = {{"model", report.name},
                      {"bits", report.bits},
                      {"group_size", report.group_size},
                      {"model_type", report.model_type},
                      {"layers", report.layers},
                      {"isa", report.isa},
                      {"activations", report.activations},
                      {"threads", report.threads},
                      {"kv", report.kv},
                      {"prepared_bytes", report.prepared_bytes},
                      {"decode_bytes", report.decode_bytes},
                      {"load_seconds", report.load_seconds},
                      {"peak_memory_bytes", report.peak_memory_bytes},
                      {"read_bandwidth", report.bandwidth}};
  json["rows"] = OrderedJson::array();
  for (const BenchRow& row : report.rows) json["rows"].push_back(RowJson(row));
  return json;
}

std::string BenchText(const BenchReport& report) {
  std::string text = fmt::format(
      "{}: {}, {} layers, {} of weights ({} read for a token), loaded in {:.1f} s, peak {}\n"
      "{} with {} threads, KV cache {}; memory reads at {}/s\n\n",
      report.name, report.model_type, report.layers,
      HumanBytes(static_cast<double>(report.prepared_bytes)),
      HumanBytes(static_cast<double>(report.decode_bytes)), report.load_seconds,
      HumanBytes(static_cast<double>(report.peak_memory_bytes)), report.isa, report.threads,
      report.kv, HumanBytes(report.bandwidth));
  std::vector<std::vector<std::string>> table = {
      {"phase", "batch", "depth", "tokens", "ms", "tokens/s", "weights", "of bandwidth"}};
  for (const BenchRow& row : report.rows) {
    const double rate = row.weight_bytes_per_second;
    const bool reads = rate > 0 && report.bandwidth > 0;
    table.push_back({row.phase, fmt::to_string(row.batch), fmt::to_string(row.depth),
                     fmt::to_string(row.tokens), fmt::format("{:.1f}", row.seconds * 1e3),
                     fmt::format("{:.1f}", static_cast<double>(row.tokens) / row.seconds),
                     reads ? HumanBytes(rate) + "/s" : "",
                     reads ? fmt::format("{:.0f} %", 100 * rate / report.bandwidth) : ""});
  }
  return text + FormatTable(table, {false, true, true, true, true, true, true, true}) +
         OpsText(report);
}

Status AppendBenchLine(const BenchReport& report, const std::string& path) {
  OrderedJson json = {{"schema", "turboquant-bench-1"},
                      {"time", fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)))},
                      {"version", TQ_VERSION}};
  json.update(BenchJson(report));
  std::ofstream out(path, std::ios::app);
  out << json.dump() << '\n';
  out.flush();
  if (out) return Status::Ok();
  return IoError("cannot append to " + path + ": " + std::strerror(errno));
}

}  // namespace tq
