//===- DescribeAssertions.cpp - Sizes in failed assertions ------*- C++ -*-===//
//
// Importers assert by `cf.assert` what they know of sizes, with a message that
// has neither the place nor the sizes. Each assertion becomes a
// `ukernel.assert` with its place and the values that its condition compares.
// This happens before buffers replace tensors, whose arguments have names.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/HostAbi/HostChecks.h"
#include "HostPreparation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

/// Maximum number of values in a message.
constexpr size_t kMaxValues = 4;

/// Collects the comparisons of whole numbers that a condition consists of.
static void collectComparisons(Value condition,
                               SmallVectorImpl<arith::CmpIOp> &comparisons) {
  Operation *op = condition.getDefiningOp();
  if (auto compare = dyn_cast_or_null<arith::CmpIOp>(op)) {
    Type type = compare.getLhs().getType();
    if (type.isIndex() || (type.isInteger() && !type.isInteger(1) &&
                           type.getIntOrFloatBitWidth() <= 64))
      comparisons.push_back(compare);
    else if (type.isInteger(1))
      for (Value operand : compare->getOperands())
        collectComparisons(operand, comparisons);
    return;
  }
  if (isa_and_nonnull<arith::AndIOp, arith::OrIOp, arith::XOrIOp,
                      arith::SelectOp>(op))
    for (Value operand : op->getOperands())
      if (operand.getType().isInteger(1))
        collectComparisons(operand, comparisons);
}

static Value toIndex(ImplicitLocOpBuilder &b, Value value) {
  return value.getType().isIndex()
             ? value
             : b.createOrFold<arith::IndexCastOp>(b.getIndexType(), value);
}

/// Splits a conjunction into an assertion for each part.
static void collectParts(Value condition, SmallVectorImpl<Value> &parts) {
  if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
    collectParts(both.getLhs(), parts);
    collectParts(both.getRhs(), parts);
    return;
  }
  parts.push_back(condition);
}

static void describe(ImplicitLocOpBuilder &b, Value condition,
                     StringRef message) {
  SmallVector<arith::CmpIOp> comparisons;
  collectComparisons(condition, comparisons);
  SmallVector<Value> sizes;
  if (message.contains("{0}") || message.contains("{1}")) {
    if (!comparisons.empty())
      for (Value value : comparisons.front()->getOperands())
        sizes.push_back(toIndex(b, value));
    return ftuner::assertSizes(b, condition, message, sizes);
  }
  std::string values;
  for (arith::CmpIOp compare : comparisons)
    for (Value value : compare->getOperands()) {
      if (matchPattern(value, m_Constant()) || sizes.size() == kMaxValues)
        continue;
      Value size = toIndex(b, value);
      if (llvm::is_contained(sizes, size))
        continue;
      std::string what = ftuner::describeSize(value);
      values += (sizes.empty() ? ", but got {" : " and {") +
                std::to_string(sizes.size()) + "}";
      if (!what.empty() && !message.contains(what))
        values += " (" + what + ")";
      sizes.push_back(size);
    }
  ftuner::assertSizes(b, condition, (message + values).str(), sizes);
}

void ftuner::describeAssertions(func::FuncOp func) {
  SmallVector<cf::AssertOp> assertions;
  func.walk([&](cf::AssertOp assertion) {
    // Assertions inside an operator's body run in its kernel.
    Operation *parent = assertion->getParentOp();
    while (isa<scf::SCFDialect>(parent->getDialect()))
      parent = parent->getParentOp();
    if (parent == func)
      assertions.push_back(assertion);
  });
  for (cf::AssertOp assertion : assertions) {
    ImplicitLocOpBuilder b(assertion.getLoc(), assertion);
    SmallVector<Value> parts;
    collectParts(assertion.getArg(), parts);
    for (Value part : parts)
      describe(b, part, assertion.getMsg());
    assertion.erase();
  }
}
