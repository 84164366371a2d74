//===- Plausibility.cpp - Costs that an operator does not need ------------===//
#include "FTuner/Target/Plausibility.h"
#include "FTuner/Analysis/OperatorKind.h"

using namespace mlir;
using namespace ftuner;

/// Returns whether the operator uses an element more often than its data grows.
static bool reusesElements(const LaunchWork &item) {
  std::optional<OperatorKind> kind = operatorKindFor(item.kind);
  return kind == OperatorKind::Contraction || kind == OperatorKind::Window;
}

unsigned ftuner::degreeOf(AffineExpr formula) {
  if (isa<AffineSymbolExpr, AffineDimExpr>(formula))
    return 1;
  auto binary = dyn_cast<AffineBinaryOpExpr>(formula);
  if (!binary)
    return 0;
  unsigned lhs = degreeOf(binary.getLHS()), rhs = degreeOf(binary.getRHS());
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return std::max(lhs, rhs);
  case AffineExprKind::Mul:
    return lhs + rhs;
  case AffineExprKind::Mod:
    return rhs;
  default:
    return lhs;
  }
}

bool ftuner::growsBeyondData(const LaunchWork &item) {
  if (operatorKindFor(item.kind) == OperatorKind::Contraction ||
      !item.operations || !item.bytes || !item.accesses)
    return false;
  return std::max(degreeOf(item.operations), degreeOf(item.accesses)) >
         degreeOf(item.bytes);
}

std::optional<double> ftuner::rooflineOf(const LaunchWork &item,
                                         ArrayRef<double> sizes,
                                         const FallbackRates &rates) {
  std::optional<double> bytes = evaluate(item.bytes, sizes);
  std::optional<double> operations = evaluate(item.operations, sizes);
  if (!bytes || !operations)
    return std::nullopt;
  double moving = *bytes * rates.perByte;
  double computing = *operations * rates.perOperation;
  return rates.launch +
         (reusesElements(item) ? std::max(moving, computing) : moving);
}
