//===- IntegerArithmetic.cpp - Operations on known indices ----------------===//
#include "FTuner/Analysis/IntegerArithmetic.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

std::optional<int64_t> ftuner::foldInteger(Operation *op, int64_t lhs,
                                           int64_t rhs) {
  bool divides = isa<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp,
                     arith::CeilDivSIOp, arith::CeilDivUIOp, arith::RemUIOp,
                     arith::RemSIOp>(op);
  if (divides && (rhs == 0 || rhs == -1))
    return std::nullopt;
  using Result = std::optional<int64_t>;
  // As unsigned numbers, which may wrap.
  auto a = static_cast<uint64_t>(lhs), b = static_cast<uint64_t>(rhs);
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](arith::AddIOp) { return Result(a + b); })
      .Case([&](arith::SubIOp) { return Result(a - b); })
      .Case([&](arith::MulIOp) { return Result(a * b); })
      .Case<arith::DivUIOp, arith::DivSIOp>(
          [&](auto) { return Result(lhs / rhs); })
      .Case([&](arith::FloorDivSIOp) {
        return Result(llvm::divideFloorSigned(lhs, rhs));
      })
      .Case<arith::CeilDivSIOp, arith::CeilDivUIOp>(
          [&](auto) { return Result(llvm::divideCeilSigned(lhs, rhs)); })
      .Case<arith::RemUIOp, arith::RemSIOp>(
          [&](auto) { return Result(lhs % rhs); })
      .Case<arith::MinSIOp, arith::MinUIOp>(
          [&](auto) { return Result(std::min(lhs, rhs)); })
      .Case<arith::MaxSIOp, arith::MaxUIOp>(
          [&](auto) { return Result(std::max(lhs, rhs)); })
      .Case([&](arith::AndIOp) { return Result(lhs & rhs); })
      .Case([&](arith::OrIOp) { return Result(lhs | rhs); })
      .Case([&](arith::XOrIOp) { return Result(lhs ^ rhs); })
      .Case([&](arith::CmpIOp compare) {
        return Result(arith::applyCmpPredicate(compare.getPredicate(),
                                               APInt(64, a), APInt(64, b)));
      })
      .Default([](Operation *) { return Result(); });
}
