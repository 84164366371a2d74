//===- KernelBuilder.cpp - Operator and family to a kernel ------*- C++ -*-===//
#include "FTuner/Kernel/KernelBuilder.h"
#include "FTuner/Analysis/KernelWork.h"
#include "FTuner/Kernel/SplitReduction.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace ftuner;

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

static bool isInnermostContiguous(MemRefType type) {
  if (type.getRank() == 0)
    return true;
  auto [strides, offset] = type.getStridesAndOffset();
  return strides.back() == 1;
}

void ftuner::makeInnermostContiguous(ukernel::OperatorOpInterface op) {
  if (op.takesAnyStrides())
    return;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (!type ||
        (isInnermostContiguous(type) &&
         memref::CollapseShapeOp::isGuaranteedCollapsible(
             type, ukernel::groupDimensions(op, operand.getOperandNumber()))))
      continue;
    Value view = operand.get();
    SmallVector<Value> dynamicSizes;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (type.isDynamicDim(dim))
        dynamicSizes.push_back(memref::DimOp::create(b, view, dim));
    Value copy = memref::AllocOp::create(
        b, MemRefType::get(type.getShape(), type.getElementType()),
        dynamicSizes);
    bool isOutput = op.isOutput(operand.getOperandNumber());
    if (!isOutput || op.readsOutput())
      linalg::CopyOp::create(b, view, copy);
    operand.set(copy);
    if (isOutput) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointAfter(op);
      linalg::CopyOp::create(b, copy, view);
    }
  }
}

Operation *ftuner::constantOf(Value operand) {
  Operation *definition = operand.getDefiningOp();
  bool isConstant = definition &&
                    definition->hasTrait<OpTrait::ConstantLike>() &&
                    !isa<ShapedType>(operand.getType());
  return isConstant ? definition : nullptr;
}

IsolatedOperator ftuner::isolate(ukernel::OperatorOpInterface op) {
  OpBuilder b(op.getContext());
  SmallVector<Type> types(op->getOperandTypes());
  for (auto [number, type] : llvm::enumerate(types)) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      continue;
    MemRefLayoutAttrInterface layout;
    if (llvm::is_contained(ukernel::paddedRowsOf(op), number)) {
      // Rows begin at any distance.
      SmallVector<int64_t> strides(tensor.getRank(), ShapedType::kDynamic);
      strides.back() = 1;
      layout = StridedLayoutAttr::get(op.getContext(), /*offset=*/0, strides);
    }
    type = MemRefType::get(tensor.getShape(), tensor.getElementType(), layout);
  }
  OwningOpRef<func::FuncOp> function = func::FuncOp::create(
      op.getLoc(), "operator", b.getFunctionType(types, {}));
  Block *body = function->addEntryBlock();
  b.setInsertionPointToStart(body);
  SmallVector<Value> operands(body->getArguments());
  for (auto [operand, original] : llvm::zip_equal(operands, op->getOperands()))
    if (Operation *constant = constantOf(original))
      operand = b.clone(*constant)->getResult(0);
  OperationState state(op.getLoc(), op->getName().getIdentifier(), operands, {},
                       op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  for (Region &region : op->getRegions()) {
    IRMapping mapping;
    region.cloneInto(state.addRegion(), mapping);
  }
  auto clone = cast<ukernel::OperatorOpInterface>(b.create(state));
  clone.setPlanAttr({});
  clone.setRangesAttr({});
  clone->removeAttr(ukernel::UKernelDialect::kExtentsAttrName);
  clone->removeAttr(kCopyAttrName);
  func::ReturnOp::create(b, op.getLoc());
  return {std::move(function), clone};
}

/// Whether both operands are parameters, or equal constants.
static bool areAlike(Value lhs, Value rhs) {
  Operation *a = constantOf(lhs), *b = constantOf(rhs);
  if (!a || !b)
    return a == b;
  return OperationEquivalence::isEquivalentTo(
      a, b, OperationEquivalence::IgnoreLocations);
}

bool ftuner::computeTheSame(ukernel::OperatorOpInterface lhs,
                            ukernel::OperatorOpInterface rhs) {
  if (!llvm::equal(lhs->getOperandTypes(), rhs->getOperandTypes()))
    return false;
  DenseMap<Value, Value> inner;
  for (auto [a, b] : llvm::zip_equal(lhs->getOperands(), rhs->getOperands())) {
    if (!areAlike(a, b))
      return false;
    inner[a] = b;
  }
  auto sameValue = [&](Value a, Value b) {
    auto it = inner.find(a);
    return success(it != inner.end() ? it->second == b : a == b);
  };
  auto mark = [&](Value a, Value b) { inner[a] = b; };
  return OperationEquivalence::isEquivalentTo(
      lhs, rhs, sameValue, mark, OperationEquivalence::IgnoreLocations);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static void buildTile(OpBuilder &b, ukernel::KernelOp kernel,
                      ukernel::OperatorOpInterface op,
                      DenseI64ArrayAttr tileSizes) {
  OpBuilder::InsertionGuard guard(b);
  auto tile = ukernel::TileOp::create(b, kernel.getLoc(), tileSizes);
  b.createBlock(&tile.getBody());
  // Constants are part of the kernel, not parameters.
  Block &body = kernel.getBody().front();
  SmallVector<Value> operands(
      body.getArguments().take_front(op->getNumOperands()));
  auto constants = OpBuilder::atBlockBegin(&body);
  for (auto [operand, original] : llvm::zip_equal(operands, op->getOperands()))
    if (Operation *constant = constantOf(original))
      operand = constants.clone(*constant)->getResult(0);
  Operation *clone = op.cloneIntoTile(b, operands, tileSizes.asArrayRef());
  // Only a search asks for symbols; kernels do not differ by them.
  clone->removeAttr(ukernel::UKernelDialect::kExtentsAttrName);
}

FailureOr<ukernel::KernelOp>
ftuner::buildKernel(OpBuilder &builder, ukernel::OperatorOpInterface op,
                    ukernel::FamilyAttr family, StringRef name,
                    StringAttr workload) {
  if (op.hasTensors())
    return op->emitOpError("expected an operator on buffers");
  if (unsigned rank = family.getRank(); rank != op.getNumAxes())
    return op->emitOpError("expected a family of ")
           << op.getNumAxes() << " axes, but got " << rank;
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  OpBuilder::InsertionGuard guard(b);
  auto kernel =
      ukernel::KernelOp::create(b, name, family.getSchedule(), workload);
  SmallVector<Type> types(op->getOperandTypes());
  types.append(op.getNumAxes() + 1, b.getIndexType());
  SmallVector<Location> locations(types.size(), op.getLoc());
  Block *body = b.createBlock(&kernel.getBody(), {}, types, locations);
  SmallVector<int64_t> heights;
  for (DenseI64ArrayAttr tile : family.getTiles())
    heights.push_back(tile[family.getAxis()]);
  Value count = heights.size() == 2 ? body->getArguments().back() : Value();
  IntegerAttr balanced, split;
  if (int64_t sms = family.getBalanced())
    balanced = b.getI64IntegerAttr(sms);
  if (family.getSplit() != 1)
    split = b.getI64IntegerAttr(family.getSplit());
  auto combine = ukernel::CombineOp::create(b, family.getAxis(), count, heights,
                                            balanced, split);
  b.createBlock(&combine.getBody());
  for (DenseI64ArrayAttr tile : family.getTiles())
    buildTile(b, kernel, op, tile);
  return kernel;
}

/// The first slice of buffers that nothing needs but the operators of launches.
static SmallVector<Value, 1> firstSlices(OpBuilder &b,
                                         ukernel::OperatorOpInterface op) {
  SmallVector<Value, 1> states;
  for (const SliceBuffer &buffer : sliceBuffersOf(op))
    states.push_back(UnrealizedConversionCastOp::create(
                         b, op.getLoc(),
                         MemRefType::get(buffer.type.getShape().drop_front(),
                                         buffer.type.getElementType()),
                         ValueRange())
                         .getResult(0));
  return states;
}

/// Builds and emits the kernel of one launch.
static FailureOr<EmittedKernel>
emitLaunch(OpBuilder &b, ukernel::OperatorOpInterface op,
           ukernel::FamilyAttr family, StringRef name, const DeviceSpec &device,
           StringAttr workload) {
  FailureOr<ukernel::KernelOp> kernel =
      buildKernel(b, op, family, name, workload);
  if (failed(kernel))
    return failure();
  FailureOr<EmittedKernel> emitted = failure();
  if (succeeded(verify(*kernel)))
    emitted = emitKernel(*kernel, device);
  kernel->erase();
  return emitted;
}

/// Erases the operator of a launch with what it made for itself: constants that
/// it starts from.
static void eraseLaunch(ukernel::OperatorOpInterface launch,
                        ukernel::OperatorOpInterface op, ValueRange states) {
  SmallVector<Operation *> made;
  for (Value operand : launch->getOperands())
    if (!llvm::is_contained(op->getOperands(), operand) &&
        !llvm::is_contained(states, operand) &&
        !llvm::is_contained(made, operand.getDefiningOp()))
      made.push_back(operand.getDefiningOp());
  launch->erase();
  for (Operation *operation : made)
    operation->erase();
}

static bool hasSlices(ukernel::OperatorOpInterface op,
                      ukernel::FamilyAttr family) {
  return op.supportsSlices() && family.getSplit() != 1 && !op.hasTensors();
}

FailureOr<EmittedKernel>
ftuner::buildGpuModule(OpBuilder &b, ukernel::OperatorOpInterface op,
                       ukernel::FamilyAttr family, StringRef name,
                       const DeviceSpec &device, StringAttr workload) {
  if (!hasSlices(op, family))
    return emitLaunch(b, op, family, name, device, workload);
  SmallVector<Value, 1> states = firstSlices(b, op);
  auto slice = cast<ukernel::OperatorOpInterface>(op.buildSlice(b, states));
  FailureOr<EmittedKernel> emitted =
      emitLaunch(b, slice, family, name, device, workload);
  eraseLaunch(slice, op, states);
  for (Value state : states)
    state.getDefiningOp()->erase();
  return emitted;
}

FailureOr<SmallVector<EmittedKernel, 1>>
ftuner::buildLaterGpuModules(OpBuilder &b, ukernel::OperatorOpInterface op,
                             ukernel::FamilyAttr family, StringRef name,
                             const DeviceSpec &device) {
  SmallVector<EmittedKernel, 1> emitted;
  if (!hasSlices(op, family) || !op.mergesInKernels())
    return emitted;
  SmallVector<Value, 1> states = firstSlices(b, op);
  bool failedOnce = false;
  for (auto [number, operation] :
       llvm::enumerate(op.buildLaterSlices(b, states))) {
    auto launch = cast<ukernel::OperatorOpInterface>(operation);
    FailureOr<EmittedKernel> kernel = failure();
    if (!failedOnce)
      kernel = emitLaunch(b, launch, family,
                          (name + "_" + Twine(number + 1)).str(), device, {});
    if (succeeded(kernel))
      emitted.push_back(std::move(*kernel));
    else
      failedOnce = true;
    eraseLaunch(launch, op, states);
  }
  for (Value state : states)
    state.getDefiningOp()->erase();
  if (failedOnce)
    return failure();
  return emitted;
}
