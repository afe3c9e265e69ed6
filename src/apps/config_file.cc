#include "apps/config_file.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"

namespace tq {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;

bool IsKey(const CLI::Option& option) {
  return option.get_configurable() && !option.get_group().empty() && !option.get_lnames().empty();
}

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

std::string NearestKey(const CLI::App& app, const std::string& key) {
  std::string nearest;
  size_t least = std::string::npos;
  for (const CLI::Option* option : app.get_options()) {
    if (!IsKey(*option)) continue;
    for (const std::string& name : option->get_lnames()) {
      const size_t distance = EditDistance(key, name);
      if (distance >= least) continue;
      least = distance;
      nearest = name;
    }
  }
  return nearest;
}

// CLI11 cuts a line at its first #, also inside quotes.
std::string CheckQuotes(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    char quote = '\0';
    for (const char c : line) {
      if (quote == '\0' && (c == '#' || c == ';')) break;
      if (quote != '\0' && c == '#') {
        return fmt::format("line {}: expected no # inside quotes, found one", number);
      }
      if (c == quote) {
        quote = '\0';
      } else if (quote == '\0' && (c == '"' || c == '\'')) {
        quote = c;
      }
    }
    if (quote != '\0')
      return fmt::format("line {}: expected a closing {}, found none", number, quote);
  }
  return "";
}

std::string ApplyItem(CLI::App& app, const CLI::ConfigItem& item) {
  const std::string key = item.fullname();
  CLI::Option* option = app.get_option_no_throw("--" + key);
  if (option == nullptr || !IsKey(*option)) {
    return fmt::format(
        "{}: expected a flag of the command without its dashes, found none; is it {}?", key,
        NearestKey(app, key));
  }
  if (option->count() > 0) return "";  // the command line has it
  try {
    if (option->get_expected_min() == 0) {
      const std::string value = app.get_config_formatter()->to_flag(item);
      option->add_result(option->get_flag_value(key, value));
    } else {
      option->add_result(item.inputs);
    }
    option->run_callback();
  } catch (const CLI::ParseError& e) {
    return fmt::format("{}: {}", key, e.what());
  } catch (const std::invalid_argument& e) {
    return fmt::format("{}: {}", key, e.what());
  }
  return "";
}

std::string ApplyText(CLI::App& app, const std::string& text) {
  std::string problem = CheckQuotes(text);
  if (!problem.empty()) return problem;
  std::vector<CLI::ConfigItem> items;
  try {
    std::istringstream stream(text);
    items = app.get_config_formatter()->from_config(stream);
  } catch (const CLI::ParseError& e) {
    return e.what();
  }
  std::set<std::string> seen;
  for (const CLI::ConfigItem& item : items) {
    if (item.name == "++" || item.name == "--") {
      return fmt::format("[{}]: expected keys without sections, found one",
                         item.parents.empty() ? "" : item.parents.front());
    }
    if (!seen.insert(item.fullname()).second) {
      return fmt::format("{}: expected a key once, found it twice", item.fullname());
    }
    problem = ApplyItem(app, item);
    if (!problem.empty()) return problem;
  }
  return "";
}

}  // namespace

void AddConfigFlag(CLI::App& app) {
  const auto apply = [&app](const std::string& path) {
    const auto text = ReadTextFile(path, kMostBytes);
    if (!text.ok()) return text.status().message();
    const std::string problem = ApplyText(app, *text);
    return problem.empty() ? "" : fmt::format("{}: {}", path, problem);
  };
  app.add_option("--config",
                 "File with a `flag = value` a line; what the command line says too comes from it")
      ->type_name("FILE")
      ->expected(1)
      ->check(apply, "")
      ->configurable(false);
}

}  // namespace tq
