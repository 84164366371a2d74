//===- HostChecks.cpp - Checks of code for the host ---*- C++ -*-===//
#include "FTuner/HostAbi/HostChecks.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

//===----------------------------------------------------------------------===//
// Divisions and loops
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

/// Factors of a product that are checked at once.
constexpr size_t kMaxFactors = 16;

static bool isProduct(Operation *op) {
  return isa_and_nonnull<arith::MulIOp, index::MulOp>(op);
}

static bool isDifference(Operation *op) {
  return isa<arith::SubIOp, index::SubOp>(op);
}

static bool canOverflow(Operation *op) {
  return isProduct(op) || isDifference(op) ||
         isa<arith::AddIOp, index::AddOp>(op);
}

static bool isArithmetic(Operation *op) {
  return isa_and_nonnull<arith::ArithDialect, index::IndexDialect>(
      op->getDialect());
}

/// The operations below `root` whose results are indices or become indices.
static llvm::SetVector<Operation *> collectSizeArithmetic(Operation *root) {
  llvm::SetVector<Operation *> found;
  SmallVector<Operation *> worklist;
  root->walk([&](Operation *op) {
    if (!op->hasTrait<OpTrait::ConstantLike>() && op->getNumResults() == 1 &&
        op->getResult(0).getType().isIndex() && isArithmetic(op))
      worklist.push_back(op);
  });
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (!found.insert(op))
      continue;
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp();
          def && operand.getType().isInteger(64) && isArithmetic(def))
        worklist.push_back(def);
  }
  found.remove_if([](Operation *op) { return !canOverflow(op); });
  return found;
}

/// The factors of a product of products.
static SmallVector<Value> collectFactors(Operation *product) {
  SmallVector<Value> factors(product->getOperands());
  for (size_t i = 0; i < factors.size();) {
    Operation *inner = factors[i].getDefiningOp();
    if (!isProduct(inner) || factors.size() >= kMaxFactors) {
      ++i;
      continue;
    }
    factors.erase(factors.begin() + i);
    factors.insert(factors.begin() + i, inner->operand_begin(),
                   inner->operand_end());
  }
  return factors;
}

/// Returns whether the product leaves 64 bits and no factor is 0.
static Value productOverflows(ImplicitLocOpBuilder &b, Operation *op) {
  // Upstream rewrites an extended product by 1 into a cast that indices have
  // not.
  Type type = b.getI64Type();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
  };
  auto differ = [&](Value lhs, Value rhs) {
    return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ne, lhs, rhs);
  };
  SmallVector<Value> factors = collectFactors(op);
  for (Value &factor : factors)
    if (factor.getType().isIndex())
      factor = b.createOrFold<arith::IndexCastOp>(type, factor);
  Value product = factors.front();
  Value overflows = arith::ConstantOp::create(b, b.getBoolAttr(false));
  for (Value factor : llvm::drop_begin(factors)) {
    auto wide = arith::MulSIExtendedOp::create(b, product, factor);
    product = wide.getLow();
    Value sign = arith::ShRSIOp::create(b, product, constant(63));
    overflows =
        b.createOrFold<arith::OrIOp>(overflows, differ(wide.getHigh(), sign));
  }
  for (Value factor : factors)
    if (!matchPattern(factor, m_Constant()))
      overflows =
          b.createOrFold<arith::AndIOp>(overflows, differ(factor, constant(0)));
  return overflows;
}

/// Returns whether a sum or difference leaves 64 bits: its sign is then not
/// that of both operands, the second one negated for a difference.
static Value sumOverflows(ImplicitLocOpBuilder &b, Operation *op) {
  Value lhs = op->getOperand(0), rhs = op->getOperand(1);
  Value result = op->getResult(0);
  auto differ = [&](Value one, Value other) {
    return b.createOrFold<arith::XOrIOp>(one, other);
  };
  Value changes = b.createOrFold<arith::AndIOp>(
      differ(lhs, result),
      isDifference(op) ? differ(lhs, rhs) : differ(rhs, result));
  Value zero =
      arith::ConstantOp::create(b, b.getIntegerAttr(result.getType(), 0));
  return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, changes,
                                       zero);
}

/// Asserts before `next` that none of `ops` overflows.
static void assertFits(ArrayRef<Operation *> ops, Operation *next) {
  ImplicitLocOpBuilder b(next->getLoc(), next);
  Value overflows = arith::ConstantOp::create(b, b.getBoolAttr(false));
  for (Operation *op : ops) {
    Value one = isProduct(op) ? productOverflows(b, op) : sumOverflows(b, op);
    overflows = b.createOrFold<arith::OrIOp>(overflows, one);
  }
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  cf::AssertOp::create(b, b.createOrFold<arith::XOrIOp>(overflows, yes),
                       "a size is negative or does not fit 64 bits");
}

void ftuner::assertSizesFit(Operation *root) {
  llvm::SetVector<Operation *> arithmetic = collectSizeArithmetic(root);
  // Products of which only products need a value are checked with those.
  auto isFactor = [&](Operation *op) {
    return isProduct(op) && !op->use_empty() &&
           llvm::all_of(op->getUsers(), isProduct);
  };
  llvm::SetVector<Operation *> checked;
  for (Operation *op : arithmetic)
    if (!isFactor(op))
      checked.insert(op);
  // Products that are too long to be checked at once leave inner ones.
  for (size_t i = 0; i < checked.size(); ++i)
    if (isProduct(checked[i]))
      for (Value factor : collectFactors(checked[i]))
        if (Operation *inner = factor.getDefiningOp();
            isProduct(inner) && arithmetic.contains(inner))
          checked.insert(inner);
  llvm::MapVector<Block *, SmallVector<Operation *>> blocks;
  for (Operation *op : arithmetic)
    blocks[op->getBlock()];
  for (auto &[block, ops] : blocks)
    for (Operation &op : *block)
      ops.push_back(&op);
  for (auto &[block, ops] : blocks) {
    SmallVector<Operation *> pending;
    for (Operation *op : ops) {
      bool isEnd = op->hasTrait<OpTrait::IsTerminator>() ||
                   !(isMemoryEffectFree(op) ||
                     isa<cf::AssertOp, ftuner::ukernel::AssertOp>(op));
      if (isEnd && !pending.empty()) {
        assertFits(pending, op);
        pending.clear();
      }
      if (checked.contains(op))
        pending.push_back(op);
    }
  }
}
