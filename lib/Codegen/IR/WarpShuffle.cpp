//===- WarpShuffle.cpp - Values of other lanes ----------------------------===//
#include "FTuner/Codegen/IR/WarpShuffle.h"
#include "FTuner/Codegen/IR/IndexMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace ftuner;

static Value shuffleWord(ImplicitLocOpBuilder &b, Value value,
                         int64_t distance) {
  constexpr int64_t kLastLane = 31;
  Value everyLane = createI32(b, -1);
  Value other = createI32(b, distance);
  Value clamp = createI32(b, kLastLane);
  return NVVM::ShflOp::create(b, value.getType(), everyLane, value, other,
                              clamp, NVVM::ShflKind::bfly, UnitAttr());
}

static Value createI64(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
}

SmallVector<Value, 2> ftuner::wordsOf(ImplicitLocOpBuilder &b, Value value) {
  if (value.getType().getIntOrFloatBitWidth() == 32)
    return {value};
  Value bits = arith::BitcastOp::create(b, b.getI64Type(), value);
  Value upper = arith::ShRUIOp::create(b, bits, createI64(b, 32));
  return {arith::TruncIOp::create(b, b.getI32Type(), bits),
          arith::TruncIOp::create(b, b.getI32Type(), upper)};
}

Value ftuner::joinWords(ImplicitLocOpBuilder &b, ValueRange words, Type type) {
  if (words.size() == 1)
    return words.front();
  Value lower = arith::ExtUIOp::create(b, b.getI64Type(), words[0]);
  Value upper = arith::ExtUIOp::create(b, b.getI64Type(), words[1]);
  Value bits = arith::OrIOp::create(
      b, lower, arith::ShLIOp::create(b, upper, createI64(b, 32)));
  return arith::BitcastOp::create(b, type, bits);
}

Value ftuner::shuffleXor(ImplicitLocOpBuilder &b, Value value,
                         int64_t distance) {
  SmallVector<Value, 2> words = wordsOf(b, value);
  for (Value &word : words)
    word = shuffleWord(b, word, distance);
  return joinWords(b, words, value.getType());
}
