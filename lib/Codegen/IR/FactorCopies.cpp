//===- FactorCopies.cpp - Copies of factors of the tensor cores -----------===//
#include "FTuner/Codegen/IR/FactorCopies.h"
#include "FTuner/Codegen/IR/Prologue.h"
#include "FTuner/Codegen/TensorFactors.h"
#include "FTuner/Dialect/UKernel/Utils/Roundings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace ftuner;

Type ftuner::factorType(Builder &b, ElementType multiplied) {
  switch (multiplied) {
  case ElementType::F16:
    return b.getF16Type();
  case ElementType::BF16:
    return b.getBF16Type();
  case ElementType::I8:
    return b.getI8Type();
  default:
    return b.getF32Type();
  }
}

TileCopy ftuner::createFactorCopy(ImplicitLocOpBuilder &b,
                                  const ContractionTile &tile, unsigned factor,
                                  const SharedTile &shared, Value memory,
                                  Type sharedType, int64_t threads,
                                  int64_t accessBytes) {
  Value global = factor == 0 ? tile.lhs : tile.rhs;
  int64_t bytes =
      cast<MemRefType>(global.getType()).getElementTypeBitWidth() / 8;
  int64_t width = elementsOfCopy(accessBytes, bytes,
                                 sharedType.getIntOrFloatBitWidth() / 8);
  TileCopy copy(b, shared, global, memory, threads, width);
  if (std::optional<CopyConversion> conversion =
          prologueOf(b, tile, factor, sharedType, width, accessBytes))
    copy.convertBy(std::move(*conversion));
  return copy;
}

bool ftuner::isUnsignedFactor(ukernel::WorkloadOp workload, unsigned factor) {
  auto parts = matchSumOfProducts(workload.getContract().front());
  return llvm::any_of(
      parts->narrowFactor(factor).getUsers(),
      [](Operation *user) { return isa<arith::ExtUIOp>(user); });
}
