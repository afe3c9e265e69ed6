#include "eval/svg_plot.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace tq {
namespace {

constexpr double kWidth = 720;
constexpr double kLeft = 80;
constexpr double kRight = 40;
constexpr double kTop = 50;
constexpr double kPanelHeight = 220;
constexpr double kPanelGap = 40;
constexpr double kBottom = 60;

constexpr std::string_view kStyle =
    "<style>\n"
    "svg { background: #ffffff; font: 13px sans-serif; }\n"
    "text { fill: #1f2328; }\n"
    ".title { font-size: 16px; font-weight: bold; }\n"
    ".grid { stroke: #d8dee4; }\n"
    ".line { stroke: #0969da; stroke-width: 2; fill: none; }\n"
    ".point { fill: #0969da; }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "  svg { background: #0d1117; }\n"
    "  text { fill: #e6edf3; }\n"
    "  .grid { stroke: #30363d; }\n"
    "  .line { stroke: #58a6ff; }\n"
    "  .point { fill: #58a6ff; }\n"
    "}\n"
    "</style>\n";

std::string Escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // Control characters have no place in XML.
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

// One axis: values to places.
class Axis {
 public:
  Axis(std::vector<double> values, double begin, double end) : begin_(begin), end_(end) {
    if (values.empty()) values.push_back(0);
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    ticks_ = AxisTicks(*low, *high);
  }
  const std::vector<double>& ticks() const { return ticks_; }
  double Place(double value) const {
    const double share = (value - ticks_.front()) / (ticks_.back() - ticks_.front());
    return begin_ + share * (end_ - begin_);
  }

 private:
  double begin_;
  double end_;
  std::vector<double> ticks_;
};

std::vector<PlotPoint> FinitePoints(const PlotPanel& panel) {
  std::vector<PlotPoint> points;
  std::copy_if(
      panel.points.begin(), panel.points.end(), std::back_inserter(points),
      [](const PlotPoint& point) { return std::isfinite(point.x) && std::isfinite(point.y); });
  std::stable_sort(points.begin(), points.end(),
                   [](const PlotPoint& a, const PlotPoint& b) { return a.x < b.x; });
  return points;
}

std::string Text(double x, double y, std::string_view attributes, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, attributes,
                     Escape(text));
}

std::string Line(double x1, double y1, double x2, double y2) {
  return fmt::format(
      "<line class=\"grid\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", x1, y1,
      x2, y2);
}

// Where the next label goes: moved down until it covers none before it.
class LabelPlaces {
 public:
  double Take(double x, double y) {
    constexpr double kLabelWidth = 100;
    constexpr double kLabelHeight = 14;
    const auto covers = [&](const std::pair<double, double>& other) {
      return std::fabs(other.first - x) < kLabelWidth && std::fabs(other.second - y) < kLabelHeight;
    };
    while (std::any_of(taken_.begin(), taken_.end(), covers)) y += kLabelHeight;
    taken_.emplace_back(x, y);
    return y;
  }

 private:
  std::vector<std::pair<double, double>> taken_;
};

std::string DrawPanel(const PlotPanel& panel, const Axis& x, double top) {
  const std::vector<PlotPoint> points = FinitePoints(panel);
  std::vector<double> values;
  for (const PlotPoint& point : points) values.push_back(point.y);
  const double bottom = top + kPanelHeight;
  const Axis y(values, bottom, top);
  std::string out;
  for (const double tick : x.ticks()) out += Line(x.Place(tick), top, x.Place(tick), bottom);
  for (const double tick : y.ticks()) {
    out += Line(kLeft, y.Place(tick), kWidth - kRight, y.Place(tick));
    out += Text(kLeft - 8, y.Place(tick) + 4, "text-anchor=\"end\"", fmt::format("{:g}", tick));
  }
  const double middle = top + kPanelHeight / 2;
  out += Text(20, middle,
              fmt::format("text-anchor=\"middle\" transform=\"rotate(-90 20 {:.1f})\"", middle),
              panel.y_label);
  std::string path;
  std::string marks;
  LabelPlaces labels;
  for (const PlotPoint& point : points) {
    const double px = x.Place(point.x);
    const double py = y.Place(point.y);
    path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "" : " ", px, py);
    marks += fmt::format("<circle class=\"point\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"/>\n", px, py);
    // Inside the panel: to the left of points in its right half, below those at its top.
    const bool left = px > (kLeft + kWidth) / 2;
    const bool below = py < top + 20;
    marks += Text(px + (left ? -8 : 8), labels.Take(px, py + (below ? 16 : -8)),
                  left ? "text-anchor=\"end\"" : "text-anchor=\"start\"", point.label);
  }
  if (!path.empty()) out += fmt::format("<polyline class=\"line\" points=\"{}\"/>\n", path);
  return out + marks;
}

}  // namespace

std::vector<double> AxisTicks(double low, double high) {
  double span = high - low;
  if (span <= 0) span = low == 0 ? 1.0 : std::fabs(low) * 0.5;
  const double rough = span / 4;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double digit = rough / power;
  const double step = power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
  const double first = std::floor(low / step);
  const double last = std::max(std::ceil(high / step), first + 1);
  std::vector<double> ticks;
  for (double i = first; i <= last; ++i) ticks.push_back(i * step);
  return ticks;
}

std::string WriteSvg(const SvgPlot& plot) {
  const auto count = static_cast<double>(plot.panels.size());
  const double height = kTop + count * kPanelHeight + (count - 1) * kPanelGap + kBottom;
  std::vector<double> values;
  for (const PlotPanel& panel : plot.panels) {
    for (const PlotPoint& point : FinitePoints(panel)) values.push_back(point.x);
  }
  const Axis x(values, kLeft, kWidth - kRight);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\">\n<title>{2}</title>\n",
      kWidth, height, Escape(plot.title));
  out += kStyle;
  out += Text(kLeft, 28, "class=\"title\"", plot.title);
  double top = kTop;
  for (const PlotPanel& panel : plot.panels) {
    out += DrawPanel(panel, x, top);
    top += kPanelHeight + kPanelGap;
  }
  const double bottom = top - kPanelGap;
  for (const double tick : x.ticks()) {
    out += Text(x.Place(tick), bottom + 20, "text-anchor=\"middle\"", fmt::format("{:g}", tick));
  }
  out += Text((kLeft + kWidth - kRight) / 2, bottom + 45, "text-anchor=\"middle\"", plot.x_label);
  return out + "</svg>\n";
}

}  // namespace tq
