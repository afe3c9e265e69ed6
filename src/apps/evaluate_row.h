// One line of evaluate's table: what a checkpoint weighs and how well it does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "eval/divergence.h"
#include "eval/svg_plot.h"
#include "eval/task_suite.h"

namespace tq {

struct EvaluateRow {
  std::string name;
  bool exact_kv = true;
  std::string kv;                 // its KV cache; "": not said
  double kv_bytes_per_token = 0;  // all layers; 0: not said
  int64_t bytes = 0;
  int64_t weights = 0;  // 0: not known
  std::optional<double> perplexity;
  std::optional<double> kl;
  std::optional<double> top1_agreement;
  std::optional<TaskReport> tasks;
  double seconds = 0;  // all of it: conversion, loading, measuring

  // 0 when the number of weights is not known.
  double bits_per_weight() const;
};

// Columns that no row has are left out. With tasks their kinds follow, one line each.
std::string RowsTable(const std::vector<EvaluateRow>& rows);
OrderedJson RowsJson(const std::vector<EvaluateRow>& rows);
// Size on x; a panel each for the task score, the divergence and the perplexity, where there are
// two points or more.
SvgPlot RowsPlot(const std::vector<EvaluateRow>& rows);

}  // namespace tq
