#include "eval/svg_plot.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace tq {
namespace {

TEST(AxisTicks, CoverTheRangeInRoundSteps) {
  EXPECT_EQ(AxisTicks(0, 4), (std::vector<double>{0, 1, 2, 3, 4}));
  EXPECT_EQ(AxisTicks(3, 16), (std::vector<double>{0, 5, 10, 15, 20}));
  EXPECT_EQ(AxisTicks(5, 5).size(), 2u);
  EXPECT_EQ(AxisTicks(0, 0).front(), 0);
  for (const double scale : {1e-9, 1.0, 1e12}) {
    const std::vector<double> ticks = AxisTicks(-1.3 * scale, 7.9 * scale);
    EXPECT_LE(ticks.front(), -1.3 * scale);
    EXPECT_GE(ticks.back(), 7.9 * scale);
    EXPECT_LT(ticks.size(), 9u);
  }
}

TEST(SvgPlot, ShowsEveryPointWithItsLabel) {
  SvgPlot plot{
      "Size <and> score", "MB", {{"KL", {{"a & b", 2, 0.5}, {"c", 1, 0.1}}}, {"tasks", {}}}};
  plot.panels[1].points = {{"gone", 1, std::nan("")},
                           {"far", std::numeric_limits<double>::infinity(), 1},
                           {"here", 1.5, 99}};
  const std::string svg = WriteSvg(plot);
  for (const char* text : {"Size &lt;and&gt; score", ">a &amp; b<", ">c<", ">here<", ">MB<", ">KL<",
                           ">tasks<", "prefers-color-scheme: dark", "</svg>"}) {
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  }
  EXPECT_EQ(svg.find("gone"), std::string::npos);
  EXPECT_EQ(svg.find("far"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  // From left to right: c, then a.
  EXPECT_LT(svg.find(">c<"), svg.find(">a &amp; b<"));
}

}  // namespace
}  // namespace tq
