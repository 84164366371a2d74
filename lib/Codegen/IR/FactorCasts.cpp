//===- FactorCasts.cpp - Factors in the type that is multiplied -----------===//
#include "FTuner/Codegen/IR/FactorCasts.h"

#include "FTuner/Dialect/UKernel/Utils/PromotedFloats.h"
#include "FTuner/Dialect/UKernel/Utils/Roundings.h"

using namespace mlir;
using namespace ftuner;

Value ftuner::castFactor(OpBuilder &b, ukernel::WorkloadOp workload,
                         unsigned factor, Value vector) {
  int64_t width = cast<VectorType>(vector.getType()).getNumElements();
  // Casts follow each other up to the product.
  Value scalar = workload.getContract().getArgument(factor);
  IRMapping mapping;
  mapping.map(scalar, vector);
  while (isExactCast(*scalar.user_begin())) {
    Operation *cast = *scalar.user_begin();
    clonePromoted(b, *cast, mapping, width);
    scalar = cast->getResult(0);
  }
  return rounded(b, vector.getLoc(), mapping.lookup(scalar), scalar.getType());
}
