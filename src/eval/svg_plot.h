// A plain plot as SVG text: panels one below the other over one horizontal axis, labelled points,
// joined from left to right. Colours follow the reader's light or dark setting.
#pragma once

#include <string>
#include <vector>

namespace tq {

struct PlotPoint {
  std::string label;
  double x = 0;
  double y = 0;
};

struct PlotPanel {
  std::string y_label;
  std::vector<PlotPoint> points;
};

struct SvgPlot {
  std::string title;
  std::string x_label;
  std::vector<PlotPanel> panels;
};

// Places for labels on an axis: multiples of 1, 2 or 5 times a power of ten, about five of them,
// the first at most `low`, the last at least `high`. Requires: both finite, low <= high.
std::vector<double> AxisTicks(double low, double high);

// Points that are not finite are left out. Texts are escaped.
std::string WriteSvg(const SvgPlot& plot);

}  // namespace tq
