//===- HostChecks.cpp - What would crash or hang the host ----*- C++ -*-===//
#include "FTuner/Transforms/HostChecks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

static bool isSigned(Operation *op) {
  return isa<arith::DivSIOp, arith::CeilDivSIOp, arith::FloorDivSIOp,
             arith::RemSIOp>(op);
}

static bool isUnsigned(Operation *op) {
  return isa<arith::DivUIOp, arith::CeilDivUIOp, arith::RemUIOp>(op);
}

static void assertDivision(Operation *op) {
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Value dividend = op->getOperand(0), divisor = op->getOperand(1);
  Type type = divisor.getType();
  APInt known;
  bool isKnown = matchPattern(divisor, m_ConstantInt(&known));
  auto constant = [&](const APInt &value) -> Value {
    return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
  };
  auto differs = [&](Value value, const APInt &from) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, value,
                                 constant(from));
  };
  unsigned width = type.isIndex() ? IndexType::kInternalStorageBitWidth
                                  : type.getIntOrFloatBitWidth();
  if (!isKnown || known.isZero())
    cf::AssertOp::create(b, differs(divisor, APInt::getZero(width)),
                         "integer division by zero");
  if (isSigned(op) && (!isKnown || known.isAllOnes())) {
    Value fits = arith::OrIOp::create(
        b, differs(dividend, APInt::getSignedMinValue(width)),
        differs(divisor, APInt::getAllOnes(width)));
    cf::AssertOp::create(b, fits, "integer division overflows");
  }
}

void ftuner::assertDivisions(Operation *root) {
  SmallVector<Operation *> divisions;
  root->walk([&](Operation *op) {
    if ((isSigned(op) || isUnsigned(op)) &&
        op->getResult(0).getType().isIntOrIndex())
      divisions.push_back(op);
  });
  for (Operation *op : divisions)
    assertDivision(op);
}

void ftuner::assertSteps(Operation *root) {
  root->walk([](scf::ForOp loop) {
    if (getConstantIntValue(loop.getStep()) ||
        loop->getParentOfType<linalg::LinalgOp>())
      return;
    ImplicitLocOpBuilder b(loop.getLoc(), loop);
    Value zero =
        arith::ConstantOp::create(b, b.getZeroAttr(loop.getStep().getType()));
    Value advances = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt,
                                           loop.getStep(), zero);
    cf::AssertOp::create(b, advances, "expected a loop with a positive step");
  });
}
