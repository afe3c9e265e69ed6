#include "apps/evaluate_row.h"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/output.h"
#include "apps/terminal.h"

namespace tq {
namespace {

struct Column {
  const char* title;
  std::function<std::string(const EvaluateRow&)> cell;  // "" when the row has none
};

std::string Percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string ScoreText(const TaskScore& score) {
  return fmt::format("{}/{} {}", score.right, score.count, Percent(score.share()));
}

std::vector<Column> Columns() {
  return {
      {"checkpoint", [](const EvaluateRow& row) { return row.name; }},
      {"size", [](const EvaluateRow& row) { return HumanBytes(static_cast<double>(row.bytes)); }},
      {"bits",
       [](const EvaluateRow& row) {
         return row.weights > 0 ? fmt::format("{:.2f}", row.bits_per_weight()) : std::string();
       }},
      {"KV cache",
       [](const EvaluateRow& row) {
         return row.kv_bytes_per_token > 0
                    ? fmt::format("{} {:.0f} B/token", row.kv, row.kv_bytes_per_token)
                    : std::string();
       }},
      {"perplexity",
       [](const EvaluateRow& row) {
         return row.perplexity ? fmt::format("{:.4f}", *row.perplexity) : std::string();
       }},
      {"KL",
       [](const EvaluateRow& row) {
         return row.kl ? fmt::format("{:.4f}", *row.kl) : std::string();
       }},
      {"same first",
       [](const EvaluateRow& row) {
         return row.top1_agreement ? Percent(*row.top1_agreement) : std::string();
       }},
      {"tasks",
       [](const EvaluateRow& row) {
         return row.tasks ? ScoreText(row.tasks->all) : std::string();
       }},
  };
}

// The scores of every kind, a column for each row.
std::string KindsTable(const std::vector<EvaluateRow>& rows) {
  std::set<std::string> kinds;
  std::vector<std::string> head = {"kind"};
  for (const EvaluateRow& row : rows) {
    if (!row.tasks) continue;
    head.push_back(row.exact_kv ? row.name : row.name + " " + row.kv);
    for (const auto& [kind, score] : row.tasks->kinds) kinds.insert(kind);
  }
  if (kinds.empty()) return "";
  std::vector<std::vector<std::string>> table = {head};
  for (const std::string& kind : kinds) {
    std::vector<std::string>& line = table.emplace_back(std::vector<std::string>{kind});
    for (const EvaluateRow& row : rows) {
      if (!row.tasks) continue;
      const auto found = row.tasks->kinds.find(kind);
      line.push_back(found == row.tasks->kinds.end() ? "-" : Percent(found->second.share()));
    }
  }
  std::vector<bool> right(head.size(), true);
  right[0] = false;
  return "\n" + FormatTable(table, right);
}

OrderedJson ScoreJson(const TaskScore& score) {
  return {{"right", score.right}, {"count", score.count}, {"share", score.share()}};
}

OrderedJson RowJson(const EvaluateRow& row) {
  OrderedJson json = {{"name", row.name}, {"bytes", row.bytes}};
  if (row.kv_bytes_per_token > 0) {
    json["kv"] = row.kv;
    json["kv_bytes_per_token"] = row.kv_bytes_per_token;
  }
  if (row.weights > 0) json["bits_per_weight"] = row.bits_per_weight();
  if (row.perplexity) json["perplexity"] = *row.perplexity;
  if (row.kl) json["kl"] = *row.kl;
  if (row.top1_agreement) json["top1_agreement"] = *row.top1_agreement;
  if (row.tasks) {
    OrderedJson tasks = ScoreJson(row.tasks->all);
    OrderedJson& kinds = tasks["kinds"] = OrderedJson::object();
    for (const auto& [kind, score] : row.tasks->kinds) kinds[kind] = ScoreJson(score);
    tasks["generated_tokens"] = row.tasks->generated_tokens;
    tasks["seconds"] = row.tasks->seconds;
    json["tasks"] = std::move(tasks);
  }
  json["seconds"] = row.seconds;
  return json;
}

void AddPanel(const std::vector<EvaluateRow>& rows, std::string label, double unit,
              const std::function<std::optional<double>(const EvaluateRow&)>& value,
              SvgPlot& plot) {
  PlotPanel panel;
  panel.y_label = std::move(label);
  for (const EvaluateRow& row : rows) {
    if (!row.exact_kv) continue;
    const std::optional<double> y = value(row);
    if (y) panel.points.push_back({row.name, static_cast<double>(row.bytes) / unit, *y});
  }
  if (panel.points.size() > 1) plot.panels.push_back(std::move(panel));
}

}  // namespace

double EvaluateRow::bits_per_weight() const {
  return weights > 0 ? 8.0 * static_cast<double>(bytes) / static_cast<double>(weights) : 0.0;
}

std::string RowsTable(const std::vector<EvaluateRow>& rows) {
  std::vector<std::vector<std::string>> table(rows.size() + 1);
  std::vector<bool> right;
  for (const Column& column : Columns()) {
    std::vector<std::string> cells;
    for (const EvaluateRow& row : rows) cells.push_back(column.cell(row));
    if (std::all_of(cells.begin(), cells.end(), [](const auto& cell) { return cell.empty(); })) {
      continue;
    }
    table[0].push_back(column.title);
    for (size_t i = 0; i < rows.size(); ++i) {
      table[i + 1].push_back(cells[i].empty() ? "-" : cells[i]);
    }
    right.push_back(!right.empty());
  }
  return FormatTable(table, right) + KindsTable(rows);
}

OrderedJson RowsJson(const std::vector<EvaluateRow>& rows) {
  OrderedJson list = OrderedJson::array();
  for (const EvaluateRow& row : rows) list.push_back(RowJson(row));
  return list;
}

SvgPlot RowsPlot(const std::vector<EvaluateRow>& rows) {
  SvgPlot plot;
  int64_t largest = 0;
  for (const EvaluateRow& row : rows) largest = std::max(largest, row.bytes);
  const bool giga = largest >= 2'000'000'000;
  const double unit = giga ? 1e9 : 1e6;
  plot.title = "Quality by size";
  plot.x_label = giga ? "size, GB" : "size, MB";
  AddPanel(
      rows, "tasks right, %", unit,
      [](const EvaluateRow& row) {
        return row.tasks ? std::optional(100 * row.tasks->all.share()) : std::nullopt;
      },
      plot);
  AddPanel(
      rows, "KL", unit, [](const EvaluateRow& row) { return row.kl; }, plot);
  AddPanel(
      rows, "perplexity", unit, [](const EvaluateRow& row) { return row.perplexity; }, plot);
  return plot;
}

}  // namespace tq
