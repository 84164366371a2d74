//===- SizeMessages.cpp - Words of checks at run time -----------*- C++ -*-===//
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/HostAbi/HostAbi.h"
#include "FTuner/HostAbi/HostChecks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;

/// A buffer that neither the caller nor the source names.
static constexpr char kIntermediate[] = "an intermediate";

/// Returns the value without casts of its type.
static Value stripCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
             arith::ExtUIOp, arith::TruncIOp, tensor::CastOp, memref::CastOp>(
            op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// Returns the function that has `value` as an argument; null for arguments of
/// other blocks.
static func::FuncOp functionOf(BlockArgument value) {
  return value && value.getOwner()->isEntryBlock()
             ? dyn_cast<func::FuncOp>(value.getOwner()->getParentOp())
             : func::FuncOp();
}

std::string ftuner::describeBuffer(Value buffer) {
  buffer = stripCasts(buffer);
  auto argument = dyn_cast<BlockArgument>(buffer);
  if (func::FuncOp func = functionOf(argument)) {
    FunctionType abiType = getAbiType(func);
    unsigned number = argument.getArgNumber();
    unsigned count = abiType ? abiType.getNumInputs() : func.getNumArguments();
    if (number < count)
      return describeArgument(func, number);
    if (number - count < abiType.getNumResults()) {
      StringRef name = getValueName(func, "results", number - count);
      return name.empty() ? "result " + std::to_string(number - count)
                          : "result '" + name.str() + "'";
    }
  }
  Operation *op = buffer.getDefiningOp();
  if (auto view = dyn_cast_or_null<ViewLikeOpInterface>(op))
    if (std::string whole = describeBuffer(view.getViewSource());
        whole != kIntermediate)
      return "a part of " + whole;
  return kIntermediate;
}

std::string ftuner::describeSize(Value size) {
  size = stripCasts(size);
  if (auto argument = dyn_cast<BlockArgument>(size)) {
    func::FuncOp func = functionOf(argument);
    return func ? describeArgument(func, argument.getArgNumber()) : "";
  }
  auto describe = [](Value shaped, std::optional<int64_t> dim) {
    return dim ? "dimension " + std::to_string(*dim) + " of " +
                     describeBuffer(shaped)
               : std::string();
  };
  if (auto dim = size.getDefiningOp<tensor::DimOp>())
    return describe(dim.getSource(), dim.getConstantIndex());
  if (auto dim = size.getDefiningOp<memref::DimOp>())
    return describe(dim.getSource(), dim.getConstantIndex());
  return "";
}

void ftuner::assertSizes(ImplicitLocOpBuilder &b, Value condition,
                         StringRef message, ValueRange sizes) {
  if (matchPattern(condition, m_One()))
    return;
  std::string position = sourcePosition(b.getLoc(), /*hasFolder=*/false);
  std::string text =
      position.empty() ? message.str() : position + ": " + message.str();
  ukernel::AssertOp::create(b, condition, text, sizes);
}
