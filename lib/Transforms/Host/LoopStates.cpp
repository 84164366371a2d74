//===- LoopStates.cpp - Tensors that loops carry ----------------*- C++ -*-===//
//
// A loop keeps each tensor that it carries in one buffer, which exists before
// the first iteration. So no iteration may change the sizes. That they stay is
// proven by induction on a copy of the function: if the tensors at the begin of
// an iteration have the sizes from before the loop, then so have the tensors at
// its end. The copy states the premise by copies into tensors of those sizes,
// and the conclusion by assertions; assertions that fold to true are proven. If
// one is left, its tensor is no longer part of the premise, and the proof
// starts again.
//
//===----------------------------------------------------------------------===//
#include "HostPreparation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;

namespace {
/// A tensor that a loop carries from iteration to iteration.
struct CarriedTensor {
  Value init, result;
  /// The tensor in each region of the loop, and the value that each region
  /// passes on.
  SmallVector<BlockArgument, 2> arguments;
  SmallVector<OpOperand *, 2> next;

  RankedTensorType type() const {
    return cast<RankedTensorType>(init.getType());
  }
};
} // namespace

/// Returns the tensors that a loop carries; none for other operations. A
/// scf.while must be aligned.
static SmallVector<CarriedTensor> tensorsCarriedBy(Operation *op) {
  SmallVector<CarriedTensor> tensors;
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    auto next = loop.getYieldedValuesMutable();
    for (auto [number, init] : llvm::enumerate(loop.getInits()))
      if (isa<RankedTensorType>(init.getType()))
        tensors.push_back({init,
                           loop.getResult(number),
                           {loop.getRegionIterArg(number)},
                           {&(*next)[number]}});
  } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    auto passed = loop.getConditionOp().getArgsMutable();
    auto next = loop.getYieldOp().getResultsMutable();
    for (auto [number, init] : llvm::enumerate(loop.getInits()))
      if (isa<RankedTensorType>(init.getType()))
        tensors.push_back({init,
                           loop.getResult(number),
                           {loop.getBeforeArguments()[number],
                            loop.getAfterArguments()[number]},
                           {&passed[number], &next[number]}});
  }
  return tensors;
}

/// Returns the loops that carry tensors, outer ones first.
static SmallVector<Operation *> collectLoops(func::FuncOp func) {
  SmallVector<Operation *> loops;
  func.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!tensorsCarriedBy(op).empty())
      loops.push_back(op);
  });
  return loops;
}

//===----------------------------------------------------------------------===//
// scf.while
//===----------------------------------------------------------------------===//

/// Returns true if both regions have each tensor at the place where the loop
/// has it.
static bool isAligned(scf::WhileOp loop) {
  TypeRange before = loop.getBeforeBody()->getArgumentTypes();
  TypeRange passed = loop.getConditionOp().getArgs().getTypes();
  for (size_t place = 0; place < std::max(before.size(), passed.size());
       ++place) {
    Type lhs = place < before.size() ? before[place] : Type();
    Type rhs = place < passed.size() ? passed[place] : Type();
    if (lhs != rhs &&
        (isa_and_nonnull<TensorType>(lhs) || isa_and_nonnull<TensorType>(rhs)))
      return false;
  }
  return true;
}

/// Makes the condition pass on every value of the loop at its place. A tensor
/// that the first region computes takes the place of a value of its type;
/// results that are not tensors follow.
static LogicalResult align(scf::WhileOp loop) {
  if (isAligned(loop))
    return success();
  scf::ConditionOp condition = loop.getConditionOp();
  SmallVector<Value> passed(loop.getBeforeArguments());
  SmallVector<size_t> places(condition.getArgs().size());
  llvm::SmallSet<size_t, 8> taken;
  auto isTensor = [](Value value) { return isa<TensorType>(value.getType()); };
  for (auto [number, value] : llvm::enumerate(condition.getArgs())) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!isTensor(value) || !argument ||
        argument.getOwner() != loop.getBeforeBody())
      continue;
    places[number] = argument.getArgNumber();
    taken.insert(places[number]);
  }
  for (auto [number, value] : llvm::enumerate(condition.getArgs())) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!isTensor(value)) {
      places[number] = passed.size();
      passed.push_back(value);
      continue;
    }
    if (argument && argument.getOwner() == loop.getBeforeBody())
      continue;
    auto free = llvm::find_if(
        llvm::seq<size_t>(0, loop.getBeforeArguments().size()),
        [&, value = value](size_t place) {
          return !taken.contains(place) &&
                 loop.getBeforeArguments()[place].getType() == value.getType();
        });
    if (*free == loop.getBeforeArguments().size())
      return loop.emitError("no lowering: expected scf.while to pass on "
                            "tensors that it carries, but got another ")
             << value.getType();
    places[number] = *free;
    passed[*free] = value;
    taken.insert(*free);
  }
  IRRewriter rewriter(loop.getContext());
  rewriter.setInsertionPoint(loop);
  SmallVector<Type> types = llvm::to_vector(ValueRange(passed).getTypes());
  auto aligned =
      scf::WhileOp::create(rewriter, loop.getLoc(), types, loop.getInits());
  condition.getArgsMutable().assign(passed);
  aligned.getBefore().takeBody(loop.getBefore());
  SmallVector<Location> locations(types.size(), loop.getLoc());
  Block *after =
      rewriter.createBlock(&aligned.getAfter(), {}, types, locations);
  SmallVector<Value> arguments, results;
  for (size_t place : places) {
    arguments.push_back(after->getArgument(place));
    results.push_back(aligned.getResult(place));
  }
  rewriter.mergeBlocks(loop.getAfterBody(), after, arguments);
  rewriter.replaceOp(loop, results);
  return success();
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

/// States by copies that the tensor has the sizes from before the loop wherever
/// the loop has the tensor.
static void stateSizes(const CarriedTensor &tensor, Operation *loop) {
  OpBuilder b(loop);
  Location loc = loop->getLoc();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor.init);
  auto state = [&](Value value) {
    b.setInsertionPointAfterValue(value);
    Value empty =
        tensor::EmptyOp::create(b, loc, sizes, tensor.type().getElementType());
    auto copy = linalg::CopyOp::create(b, loc, value, empty);
    // tensor.empty gets the sizes that are known.
    Value same = copy.getResult(0);
    Operation *last = copy;
    if (same.getType() != value.getType())
      last = tensor::CastOp::create(b, loc, value.getType(), same);
    value.replaceUsesWithIf(last->getResult(0), [&](OpOperand &use) {
      return use.getOwner() != copy;
    });
  };
  for (BlockArgument argument : tensor.arguments)
    state(argument);
  state(tensor.result);
}

namespace {
/// A size of a tensor that a loop carries, by the numbers of the loop among
/// others, of the tensor and of the dimension.
struct CarriedSize {
  int64_t loop, tensor, dim;
};
} // namespace

static constexpr StringLiteral kSizeAttrName = "ukernel.carried_size";

/// Makes operations after an assertion that two sizes are equal use one of
/// them.
static void useAssertedEqualities(func::FuncOp func) {
  DominanceInfo dominance(func);
  func.walk<WalkOrder::PreOrder>([&](cf::AssertOp assertion) {
    auto compare = assertion.getArg().getDefiningOp<arith::CmpIOp>();
    if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq ||
        !compare.getLhs().getType().isIndex() ||
        assertion->hasAttr(kSizeAttrName))
      return;
    Value kept = compare.getRhs(), replaced = compare.getLhs();
    if (matchPattern(replaced, m_Constant()))
      std::swap(kept, replaced);
    auto isBehind = [&](OpOperand &use) {
      return dominance.properlyDominates(assertion, use.getOwner());
    };
    replaced.replaceUsesWithIf(kept, isBehind);
    // Others may hold the same comparison.
    OpBuilder b(assertion);
    Value yes =
        arith::ConstantOp::create(b, assertion.getLoc(), b.getBoolAttr(true));
    Value(compare).replaceUsesWithIf(yes, isBehind);
  });
}

/// Asserts that a tensor that an iteration passes on has the sizes from before
/// the loop.
static void assertSizes(const CarriedTensor &tensor, Operation *loop,
                        int64_t loopNumber, int64_t number) {
  for (int64_t dim = 0; dim < tensor.type().getRank(); ++dim) {
    if (!tensor.type().isDynamicDim(dim))
      continue;
    OpBuilder b(loop);
    Location loc = loop->getLoc();
    Value expected = tensor::DimOp::create(b, loc, tensor.init, dim);
    for (OpOperand *next : tensor.next) {
      b.setInsertionPoint(next->getOwner());
      Value size = tensor::DimOp::create(b, loc, next->get(), dim);
      Value isEqual = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                            size, expected);
      auto assertion = cf::AssertOp::create(b, loc, isEqual, "size");
      assertion->setAttr(kSizeAttrName,
                         b.getDenseI64ArrayAttr({loopNumber, number, dim}));
    }
  }
}

/// Tries the proof for the tensors of each loop that `isKept` accepts. Returns
/// the sizes that are not proven.
static FailureOr<SmallVector<CarriedSize>>
findChangedSizes(func::FuncOp func, ArrayRef<SmallVector<bool>> isKept) {
  OwningOpRef<func::FuncOp> copy = func.clone();
  copy->setName("ukernel.sizes_of_loops");
  copy->setPrivate();
  OpBuilder(func).insert(*copy);
  func::FuncOp proof = copy.release();
  auto erase = llvm::make_scope_exit([&] { proof.erase(); });
  for (auto [loopNumber, loop] : llvm::enumerate(collectLoops(proof)))
    for (auto [number, tensor] : llvm::enumerate(tensorsCarriedBy(loop)))
      if (isKept[loopNumber][number]) {
        assertSizes(tensor, loop, loopNumber, number);
        stateSizes(tensor, loop);
      }
  // Each round merges common subexpressions, so that more folds. Sizes that are
  // asserted to be equal are one value from then on.
  if (failed(ftuner::simplifySizes(proof)))
    return func.emitError("could not simplify the sizes that loops keep");
  useAssertedEqualities(proof);
  for (int round = 0; round < 2; ++round)
    if (failed(ftuner::simplifySizes(proof)))
      return func.emitError("could not simplify the sizes that loops keep");
  SmallVector<CarriedSize> changed;
  proof.walk([&](cf::AssertOp assertion) {
    if (auto size = assertion->getAttrOfType<DenseI64ArrayAttr>(kSizeAttrName))
      changed.push_back({size[0], size[1], size[2]});
  });
  return changed;
}

LogicalResult ftuner::fixLoopSizes(func::FuncOp func) {
  SmallVector<scf::WhileOp> whiles;
  func.walk([&](scf::WhileOp loop) { whiles.push_back(loop); });
  for (scf::WhileOp loop : whiles)
    if (failed(align(loop)))
      return failure();
  SmallVector<Operation *> loops = collectLoops(func);
  SmallVector<SmallVector<bool>> isKept;
  bool isAnyDynamic = false;
  for (Operation *loop : loops) {
    isKept.emplace_back();
    for (const CarriedTensor &tensor : tensorsCarriedBy(loop)) {
      isKept.back().push_back(!tensor.type().hasStaticShape());
      isAnyDynamic |= isKept.back().back();
    }
  }
  if (!isAnyDynamic)
    return success();
  std::optional<CarriedSize> first;
  for (bool isProven = false; !isProven;) {
    FailureOr<SmallVector<CarriedSize>> changed =
        findChangedSizes(func, isKept);
    if (failed(changed))
      return failure();
    isProven = changed->empty();
    for (CarriedSize size : *changed) {
      isKept[size.loop][size.tensor] = false;
      if (!first)
        first = size;
    }
  }
  if (first) {
    Operation *loop = loops[first->loop];
    return loop->emitError("no lowering: expected ")
           << loop->getName()
           << " to keep the sizes of the tensors that it carries, but "
              "dimension "
           << first->dim << " of tensor " << first->tensor
           << " may change from iteration to iteration";
  }
  // Sizes in and after loops become the sizes from before them.
  for (Operation *loop : loops)
    for (const CarriedTensor &tensor : tensorsCarriedBy(loop)) {
      SmallVector<Value> values(tensor.arguments.begin(),
                                tensor.arguments.end());
      values.push_back(tensor.result);
      for (Value value : values)
        for (Operation *user : llvm::make_early_inc_range(value.getUsers()))
          if (auto dim = dyn_cast<tensor::DimOp>(user);
              dim && dim.getConstantIndex()) {
            OpBuilder b(loop);
            dim.replaceAllUsesWith(b.createOrFold<tensor::DimOp>(
                dim.getLoc(), tensor.init, *dim.getConstantIndex()));
            dim.erase();
          }
    }
  return success();
}

void ftuner::stateLoopSizes(func::FuncOp func) {
  for (Operation *loop : collectLoops(func))
    for (const CarriedTensor &tensor : tensorsCarriedBy(loop)) {
      if (!tensor.type().hasStaticShape())
        stateSizes(tensor, loop);
      // Elements do not matter, and no pattern drops values that only the next
      // iteration reads.
      for (auto [next, argument] :
           llvm::zip_equal(tensor.next, tensor.arguments))
        next->set(argument);
    }
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// Returns true if the value may lie in the buffer of an argument of its block
/// when the block ends.
static bool mayLieInArgument(Value value, Block *block) {
  Operation *op = value.getDefiningOp();
  while (isa_and_nonnull<tensor::CastOp, tensor::CollapseShapeOp,
                         tensor::ExpandShapeOp, tensor::ExtractSliceOp,
                         tensor::ReshapeOp>(op)) {
    value = op->getOperand(0);
    op = value.getDefiningOp();
  }
  if (!op)
    return cast<BlockArgument>(value).getOwner() == block;
  return isa<arith::SelectOp, RegionBranchOpInterface>(op);
}

/// Writes the tensors that one region of a loop passes on to the buffers of the
/// arguments. A tensor that lies in one of these buffers is copied before any
/// buffer is written.
static void writeBack(ArrayRef<std::pair<OpOperand *, BlockArgument>> values) {
  Operation *terminator = values.front().first->getOwner();
  OpBuilder b(terminator);
  Location loc = terminator->getLoc();
  for (auto [operand, argument] : values) {
    if (operand->get() == argument ||
        !mayLieInArgument(operand->get(), argument.getOwner()))
      continue;
    auto type = cast<RankedTensorType>(argument.getType());
    SmallVector<Value> sizes;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (type.isDynamicDim(dim))
        sizes.push_back(tensor::DimOp::create(b, loc, argument, dim));
    Value empty = tensor::EmptyOp::create(b, loc, type.getShape(),
                                          type.getElementType(), sizes);
    operand->set(
        linalg::CopyOp::create(b, loc, operand->get(), empty).getResult(0));
  }
  for (auto [operand, argument] : values)
    if (operand->get() != argument)
      operand->set(bufferization::MaterializeInDestinationOp::create(
                       b, loc, operand->get(), argument)
                       ->getResult(0));
}

void ftuner::keepLoopsInPlace(func::FuncOp func) {
  for (Operation *loop : collectLoops(func)) {
    SmallVector<CarriedTensor> tensors = tensorsCarriedBy(loop);
    for (size_t region = 0; region < tensors.front().next.size(); ++region) {
      SmallVector<std::pair<OpOperand *, BlockArgument>> values;
      for (const CarriedTensor &tensor : tensors)
        values.emplace_back(tensor.next[region], tensor.arguments[region]);
      writeBack(values);
    }
  }
}
