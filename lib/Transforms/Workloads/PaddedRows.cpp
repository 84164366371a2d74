//===- PaddedRows.cpp - Aligned rows of intermediate tensors --------------===//
//
// Kernels move rows in vectors where rows are whole vectors. No caller sees a
// tensor between two operators, so its rows can begin at multiples of 32 bytes
// whatever their length is. Scores of attention over 2047 keys, for example,
// have rows of 2048 elements in memory, and take the same kernels as those over
// 2048 keys. The pass `ukernel-pad-rows` marks the operands of both operators
// while they are tensors. The pass `ukernel-allocate-padded-rows` lays out the
// memory of buffers.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"
#include "FTuner/Dialect/UKernel/Utils/IndexArithmetic.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Transforms/Passes.h"
#include "FTuner/Workload/Contraction.h"
#include "FTuner/Workload/RowReduction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELPADROWSPASS
#define GEN_PASS_DEF_UKERNELALLOCATEPADDEDROWSPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;
using ukernel::OperatorOpInterface;

//===----------------------------------------------------------------------===//
// Operands that may have padded rows
//===----------------------------------------------------------------------===//

/// Returns true if the regions can compute any elements without harm, such as
/// those in the padding.
static bool mayComputePadding(OperatorOpInterface op) {
  return !op->walk([](Operation *inner) {
              bool isHarmless = inner->hasTrait<OpTrait::IsTerminator>() ||
                                isa<OperatorOpInterface>(inner) ||
                                isPure(inner);
              return isHarmless ? WalkResult::advance()
                                : WalkResult::interrupt();
            }).wasInterrupted();
}

static bool mayPadContraction(const Workload &workload, unsigned number) {
  ContractionView view(workload);
  const Operand &operand = workload.operands[number];
  switch (operand.role) {
  case OperandRole::Lhs:
  case OperandRole::Rhs:
    // Prologues read single elements of their inputs beyond the end of k.
    return operand.contiguousAxis() == view.k &&
           llvm::none_of(workload.operands, [&](const Operand &other) {
             return other.role == OperandRole::Input &&
                    llvm::is_contained(other.axes, view.k);
           });
  case OperandRole::Input:
    return false;
  case OperandRole::Init:
  case OperandRole::Extra:
  case OperandRole::Output:
    return operand.contiguousAxis() == view.n && hasVectorEpilogue(workload);
  }
  llvm_unreachable("all roles are handled");
}

/// Returns whether kernels of an operator, which is described by the workload,
/// can read or write an operand with padded rows in vectors.
static bool mayPad(OperatorOpInterface op, Workload workload, unsigned number) {
  const Operand &operand = workload.operands[number];
  if (operand.hasWindows() || operand.isPacked ||
      !operand.indirections.empty() || !mayComputePadding(op))
    return false;
  // Lets `hasVectorEpilogue` answer for padded rows.
  workload.operands[number].isPitched = true;
  if (workload.isContraction())
    return mayPadContraction(workload, number);
  std::optional<RowReductionView> rows = workload.asRowReduction();
  return rows && rows->laneAxis() == rows->row() && rows->isAlongLanes(operand);
}

/// Returns whether all sizes of an operand's rows begin where padded ones do.
static bool isAlwaysAligned(const Workload &workload, unsigned number) {
  const Operand &operand = workload.operands[number];
  std::optional<unsigned> axis = operand.contiguousAxis();
  if (!axis)
    return true;
  const SizeRange &range = workload.axes[*axis].range;
  auto isAligned = [&](int64_t size) {
    int64_t bytes = size * operand.elementBytes;
    return rowPitch(bytes, /*isPadded=*/true) == bytes;
  };
  return isAligned(range.min) && (range.isFixed() || isAligned(range.step));
}

//===----------------------------------------------------------------------===//
// Readers
//===----------------------------------------------------------------------===//

/// Returns whether a reshape keeps rows, and can be a view of padded ones: it
/// only splits dimensions before the last, or drops some of size 1.
template <typename ExpandOp, typename CollapseOp>
static bool keepsRows(Operation *op) {
  if (auto expand = dyn_cast<ExpandOp>(op)) {
    auto groups = expand.getReassociationIndices();
    return !groups.empty() && groups.back().size() == 1;
  }
  auto collapse = dyn_cast<CollapseOp>(op);
  if (!collapse)
    return false;
  auto groups = collapse.getReassociationIndices();
  if (groups.empty() || groups.back().size() != 1)
    return false;
  return llvm::all_of(groups, [&](const ReassociationIndices &group) {
    return llvm::count_if(group, [&](int64_t dim) {
             return collapse.getSrcType().getDimSize(dim) != 1;
           }) <= 1;
  });
}

/// Collects the operands of operators that read a tensor, also through
/// reshapes; fails if something else reads it.
static LogicalResult collectReaders(Value tensor,
                                    SmallVectorImpl<OpOperand *> &readers) {
  for (OpOperand &use : tensor.getUses()) {
    Operation *user = use.getOwner();
    if (isa<tensor::DimOp>(user))
      continue;
    if (auto op = dyn_cast<OperatorOpInterface>(user)) {
      if (op.isOutput(use.getOperandNumber()) ||
          !mayPad(op, toWorkload(op), use.getOperandNumber()))
        return failure();
      readers.push_back(&use);
      continue;
    }
    if (!keepsRows<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(user) ||
        failed(collectReaders(user->getResult(0), readers)))
      return failure();
  }
  return success();
}

static void mark(OperatorOpInterface op, unsigned number) {
  SmallVector<int64_t> numbers(ukernel::paddedRowsOf(op));
  if (llvm::is_contained(numbers, number))
    return;
  numbers.push_back(number);
  llvm::sort(numbers);
  ukernel::setPaddedRows(op, numbers);
}

/// Marks a result and the operands that read it, if its rows can be padded.
static void padRows(OperatorOpInterface op, OpResult result) {
  OpOperand &output = *op.getTiedOpOperand(result);
  unsigned number = output.getOperandNumber();
  auto type = dyn_cast<RankedTensorType>(result.getType());
  if (!type || type.getRank() < 2 || !fillsBytes(type.getElementType()) ||
      !output.get().getDefiningOp<tensor::EmptyOp>())
    return;
  Workload workload = toWorkload(op);
  if (isAlwaysAligned(workload, number) || !mayPad(op, workload, number))
    return;
  SmallVector<OpOperand *> readers;
  if (failed(collectReaders(result, readers)) || readers.empty())
    return;
  mark(op, number);
  for (OpOperand *reader : readers)
    mark(cast<OperatorOpInterface>(reader->getOwner()),
         reader->getOperandNumber());
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Returns whether everything that uses a buffer can use padded rows: operators
/// whose operands are marked, and views with the same rows.
static bool takePaddedRows(Value buffer) {
  return llvm::all_of(buffer.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto op = dyn_cast<OperatorOpInterface>(user))
      return llvm::is_contained(ukernel::paddedRowsOf(op),
                                use.getOperandNumber());
    return isa<memref::DimOp, memref::DeallocOp>(user) ||
           (keepsRows<memref::ExpandShapeOp, memref::CollapseShapeOp>(user) &&
            takePaddedRows(user->getResult(0)));
  });
}

/// Replaces a buffer by one with other strides, in views of it, too.
static LogicalResult replaceBuffer(Value buffer, Value other) {
  for (OpOperand &use : llvm::make_early_inc_range(buffer.getUses())) {
    Operation *user = use.getOwner();
    FailureOr<MemRefType> type = failure();
    auto source = cast<MemRefType>(other.getType());
    if (auto expand = dyn_cast<memref::ExpandShapeOp>(user))
      type = memref::ExpandShapeOp::computeExpandedType(
          source, expand.getResultType().getShape(),
          expand.getReassociationIndices());
    else if (auto collapse = dyn_cast<memref::CollapseShapeOp>(user))
      type = memref::CollapseShapeOp::computeCollapsedType(
          source, collapse.getReassociationIndices());
    else {
      use.set(other);
      continue;
    }
    if (failed(type))
      return user->emitOpError("expected a view of padded rows");
    OpBuilder b(user);
    Operation *view = b.clone(*user);
    view->setOperand(use.getOperandNumber(), other);
    view->getResult(0).setType(*type);
    if (failed(replaceBuffer(user->getResult(0), view->getResult(0))))
      return failure();
    user->erase();
  }
  return success();
}

/// Gives an allocation padded rows, of which uses see the elements.
static LogicalResult padAllocation(memref::AllocOp alloc) {
  MemRefType type = alloc.getType();
  int64_t elements = paddedRowBytes / elementBytesOf(type);
  ImplicitLocOpBuilder b(alloc.getLoc(), alloc);
  ukernel::IndexArithmetic math(b);
  SmallVector<int64_t> shape(type.getShape());
  SmallVector<Value> sizes(alloc.getDynamicSizes());
  if (ShapedType::isDynamic(shape.back())) {
    Value sectors = b.createOrFold<arith::CeilDivUIOp>(sizes.back(),
                                                       math.constant(elements));
    sizes.back() = math.mul(sectors, math.constant(elements));
  } else {
    shape.back() = llvm::alignTo(shape.back(), elements);
  }
  auto padded = memref::AllocOp::create(
      b,
      MemRefType::get(shape, type.getElementType(), MemRefLayoutAttrInterface(),
                      type.getMemorySpace()),
      sizes, alloc.getAlignmentAttr());
  SmallVector<OpFoldResult> offsets(shape.size(), b.getIndexAttr(0)),
      strides(shape.size(), b.getIndexAttr(1));
  Value rows = memref::SubViewOp::create(b, padded, offsets,
                                         alloc.getMixedSizes(), strides);
  if (failed(replaceBuffer(alloc, rows)))
    return failure();
  alloc.erase();
  return success();
}

namespace {
struct UKernelPadRowsPass
    : public ftuner::impl::UKernelPadRowsPassBase<UKernelPadRowsPass> {
  using UKernelPadRowsPassBase::UKernelPadRowsPassBase;

  void runOnOperation() override {
    getOperation().walk([](OperatorOpInterface op) {
      for (OpResult result : op->getResults())
        padRows(op, result);
    });
  }
};

struct UKernelAllocatePaddedRowsPass
    : public ftuner::impl::UKernelAllocatePaddedRowsPassBase<
          UKernelAllocatePaddedRowsPass> {
  using UKernelAllocatePaddedRowsPassBase::UKernelAllocatePaddedRowsPassBase;

  void runOnOperation() override {
    SmallVector<memref::AllocOp> allocations;
    getOperation().walk([&](memref::AllocOp alloc) {
      MemRefType type = alloc.getType();
      if (type.getRank() > 1 && type.getLayout().isIdentity() &&
          fillsBytes(type.getElementType()) && takePaddedRows(alloc))
        allocations.push_back(alloc);
    });
    for (memref::AllocOp alloc : allocations)
      if (failed(padAllocation(alloc)))
        return signalPassFailure();
  }
};
} // namespace
