//===- WarpShuffle.cpp - Values of other lanes ----------------------------===//
#include "FTuner/Codegen/IR/WarpShuffle.h"
#include "FTuner/Codegen/IR/IndexMath.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace ftuner;

Value ftuner::shuffleXor(ImplicitLocOpBuilder &b, Value value,
                         int64_t distance) {
  constexpr int64_t kLastLane = 31;
  Value everyLane = createI32(b, -1);
  Value other = createI32(b, distance);
  Value clamp = createI32(b, kLastLane);
  return NVVM::ShflOp::create(b, value.getType(), everyLane, value, other,
                              clamp, NVVM::ShflKind::bfly, UnitAttr());
}
