//===- Compare.cpp - Agreement of a result with its reference -------------===//
#include "FTuner/Executor/Tensor.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace llvm;

namespace ftuner {

/// E.g. "element [3, 17]: 0.25 instead of 0.5".
static std::string describe(const Tensor &result, const Tensor &reference,
                            int64_t index) {
  std::string text = "]: ";
  int64_t rest = index;
  ArrayRef<int64_t> shape = result.getShape();
  for (size_t d = shape.size(); d-- > 0;) {
    text = std::to_string(rest % shape[d]) +
           (d + 1 < shape.size() ? ", " : "") + text;
    rest /= shape[d];
  }
  raw_string_ostream stream(text);
  if (isFloat(result.getType()))
    stream << format("%.9g instead of %.9g", result.getDouble(index),
                     reference.getDouble(index));
  else
    stream << result.getInteger(index) << " instead of "
           << reference.getInteger(index);
  return "element [" + text;
}

Comparison compare(const Tensor &result, const Tensor &reference) {
  Comparison comparison;
  bool floats = isFloat(result.getType());
  double difference2 = 0, norm2 = 0, largest = 0, largestExpected = 0;
  int64_t worst = -1, firstMismatch = -1;
  for (int64_t i = 0, end = result.getNumElements(); i < end; ++i) {
    double value = result.getDouble(i), expected = reference.getDouble(i);
    bool mismatch = !floats && result.getInteger(i) != reference.getInteger(i);
    if (!std::isfinite(value) || !std::isfinite(expected)) {
      bool same =
          (std::isnan(value) && std::isnan(expected)) || value == expected;
      if (!same) {
        ++comparison.numMismatches;
        firstMismatch = firstMismatch < 0 ? i : firstMismatch;
      }
      continue;
    }
    if (mismatch) {
      ++comparison.numMismatches;
      firstMismatch = firstMismatch < 0 ? i : firstMismatch;
    }
    double difference = value - expected;
    difference2 += difference * difference;
    norm2 += expected * expected;
    largestExpected = std::max(largestExpected, std::fabs(expected));
    if (std::fabs(difference) > largest) {
      largest = std::fabs(difference);
      worst = i;
    }
  }
  if (difference2 > 0)
    comparison.relativeError = norm2 > 0
                                   ? std::sqrt(difference2 / norm2)
                                   : std::numeric_limits<double>::infinity();
  if (norm2 > 0)
    comparison.largestShare = largestExpected / std::sqrt(norm2);
  worst = firstMismatch >= 0 ? firstMismatch : worst;
  if (worst >= 0)
    comparison.worst = describe(result, reference, worst);
  return comparison;
}

} // namespace ftuner
