//===- PredictorForm.cpp - Computation of a predictor ---------------------===//
#include "PredictorForm.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace ftuner;

PredictorForm::~PredictorForm() = default;

double LabelTransform::backward(double label) const {
  static constexpr double almostNone = 1e-12;
  double raw = (label - shift) * deviation + mean;
  if (!std::isfinite(raw))
    return std::numeric_limits<double>::quiet_NaN();
  double result = raw;
  switch (kind) {
  case Kind::BoxCox: {
    double power = values[0];
    double logarithm =
        power != 0 ? std::log(std::max(1 + power * raw, almostNone)) / power
                   : raw;
    result = std::exp(std::clamp(logarithm, -700.0, 700.0));
    break;
  }
  case Kind::YeoJohnson: {
    double power = values[0];
    result =
        power != 0
            ? std::expm1(std::log1p(std::max(power * raw, almostNone - 1)) /
                         power)
            : std::expm1(raw);
    break;
  }
  case Kind::Quantile: {
    double place = std::erfc(-raw / std::sqrt(2.0)) / 2 *
                   static_cast<double>(values.size() - 1);
    auto below = static_cast<size_t>(std::max(place, 0.0));
    below = std::min(below, values.size() - 1);
    size_t above = std::min(below + 1, values.size() - 1);
    double share = place - static_cast<double>(below);
    result = values[below] + share * (values[above] - values[below]);
    break;
  }
  case Kind::None:
    break;
  }
  return std::clamp(result, minimum, maximum);
}
