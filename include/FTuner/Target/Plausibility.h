//===- Plausibility.h - Costs that an operator does not need ----*- C++ -*-===//
//
// Checks of a report against the operators of the source. Shares of FLOPs count
// what a kernel executes, so a kernel that executes too much has a large share
// and looks good. Two checks tell it apart:
//
//   growth    the operations or accesses of a kernel are a polynomial of the
//             sizes of higher degree than its bytes, though its operator is not
//             a contraction: a cumulative sum of T elements by T² additions
//   roofline  the predicted time is more than `kImplausibleRoofline` times the
//             roofline of the operator,
//
//               launch + bytes / DRAM bandwidth
//
//             and for contractions and windows
//
//               launch + max(bytes / DRAM bandwidth, FLOPs / peak)
//
// with each element of each operand moved once.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TARGET_PLAUSIBILITY_H
#define FTUNER_TARGET_PLAUSIBILITY_H

#include "FTuner/Analysis/FunctionWork.h"
#include "FTuner/CostModel/Fallback.h"

#include <optional>

namespace ftuner {

/// A predicted time beyond this multiple of the operator's roofline is a
/// warning. Direct loops of convolutions and products stay below it.
inline constexpr double kImplausibleRoofline = 50;

/// The degree of a polynomial of sizes: the maximum, over its monomials, of the
/// number of sizes in them. Quotients have the degree of the dividend.
unsigned degreeOf(mlir::AffineExpr formula);

/// Returns whether the launch executes more than linearly in its bytes, though
/// its operator needs no more. False where a formula is not known.
bool growsBeyondData(const LaunchWork &item);

/// The roofline of the launch's operator at these sizes, in microseconds of one
/// launch; none where its work does not follow from the sizes.
std::optional<double> rooflineOf(const LaunchWork &item,
                                 llvm::ArrayRef<double> sizes,
                                 const FallbackRates &rates);

} // namespace ftuner

#endif // FTUNER_TARGET_PLAUSIBILITY_H
