//===- IreeDispatch.cpp - Workloads as dispatches -------------------------===//
#include "IreeDispatch.h"
#include "FTuner/Dialect/UKernel/Utils/IndexArithmetic.h"
#include "FTuner/Dispatch/IR/FamilyDispatch.h"
#include "FTuner/HostAbi/HostAbi.h"
#include "FTuner/Schedule/Grid.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace ftuner;
using iree::WorkloadKernels;
using ukernel::OperatorOpInterface;
using ukernel::ParameterKind;

/// A value in 32 bits, or one half of one in 64.
static Value toI32(ImplicitLocOpBuilder &b, Value value, ParameterKind kind) {
  Type type = value.getType();
  if (type.isIndex()) {
    value = arith::IndexCastOp::create(b,
                                       kind == ParameterKind::Size ||
                                               kind == ParameterKind::Stride ||
                                               kind == ParameterKind::Part
                                           ? b.getI32Type()
                                           : b.getI64Type(),
                                       value);
  } else if (isa<FloatType>(type)) {
    value = arith::BitcastOp::create(
        b, b.getIntegerType(type.getIntOrFloatBitWidth()), value);
  }
  if (kind == ParameterKind::ScalarHigh) {
    Value half = arith::ConstantOp::create(b, b.getI64IntegerAttr(32));
    value = arith::ShRUIOp::create(b, value, half);
  }
  unsigned width = value.getType().getIntOrFloatBitWidth();
  if (width > 32)
    return arith::TruncIOp::create(b, b.getI32Type(), value);
  if (width < 32)
    return arith::ExtUIOp::create(b, b.getI32Type(), value);
  return value;
}

namespace {
/// The host's side of one workload.
class DispatchBuilder {
public:
  DispatchBuilder(OperatorOpInterface op, const WorkloadKernels &workload)
      : b(op.getLoc(), op), math(b), op(op), workload(workload) {
    for (unsigned axis = 0; axis < op.getNumAxes(); ++axis) {
      auto [source, dim] = op.getExtentSource(axis);
      extents.push_back(size(source, dim));
    }
  }
  ValueRange build(IreeTarget target);

private:
  /// A launch: the blocks of a choice, and the blocks of its first part;
  /// likewise for slices, with their number of elements.
  struct Launches {
    Value blocks, firstBlocks;
    Value sliceBlocks, firstSliceBlocks, sliceElements;
  };

  Value size(Value tensor, int64_t dim) {
    return b.createOrFold<tensor::DimOp>(tensor, dim);
  }
  /// Elements from one index of a dense tensor's dimension to the next.
  Value stride(Value tensor, int64_t dim);
  /// Returns whether rows are whole vectors; tensors begin at aligned
  /// addresses.
  Value buildAligned(int64_t alignment);
  Value buildFamily();
  SmallVector<Value> countBlocks(unsigned family);
  Launches buildLaunches(Value family);
  Value constantFor(const KernelParameter &parameter, Value operand,
                    Value firstBlocks);
  Value buildSlices(IreeTarget target, Value family, const Launches &launches);

  ImplicitLocOpBuilder b;
  ukernel::IndexArithmetic math;
  OperatorOpInterface op;
  const WorkloadKernels &workload;
  SmallVector<Value> extents;
};
} // namespace

Value DispatchBuilder::stride(Value tensor, int64_t dim) {
  Value result = math.constant(1);
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  for (int64_t inner = dim + 1; inner < rank; ++inner)
    result = math.mul(result, size(tensor, inner));
  return result;
}

Value DispatchBuilder::buildAligned(int64_t alignment) {
  // Rows that are whole vectors are so far apart, too.
  Value remainders = math.constant(0);
  for (auto [axis, elements] : elementsAlongAxes(vectorOperands(op), alignment))
    remainders = b.createOrFold<arith::OrIOp>(
        remainders, math.rem(extents[axis], elements));
  return math.compare(arith::CmpIPredicate::eq, remainders, math.constant(0));
}

Value DispatchBuilder::buildFamily() {
  const Plan &plan = workload.plan;
  AxisSet reduced = plan.families.front().reduced();
  Value family = buildFamilyOfShape(b, plan.entries, plan.generalFamily,
                                    extents, reduced, /*hasSwitches=*/false);
  if (!plan.needsAlignment())
    return family;
  Value unaligned =
      buildFamilyOfShape(b, plan.unalignedEntries, plan.unalignedGeneralFamily,
                         extents, reduced, /*hasSwitches=*/false);
  return math.select(buildAligned(plan.alignment()), family, unaligned);
}

/// Counts the blocks of a family's launch, in the order of `Launches`; without
/// slices only the first two.
SmallVector<Value> DispatchBuilder::countBlocks(unsigned family) {
  const KernelFamily &decoded = workload.plan.families[family];
  auto [first, blocks] = launchOf(math, gridOf(decoded), extents);
  if (!workload.hasSlices())
    return {blocks, first};
  Value none = math.constant(0), one = math.constant(1);
  if (decoded.reduceSplit == 1)
    return {blocks, first, none, none, one};
  Value points = one;
  AffineMap output =
      op.getMapOfOperand(op.getDpsInitOperand(0)->getOperandNumber());
  for (AffineExpr position : output.getResults())
    points =
        math.mul(points, extents[cast<AffineDimExpr>(position).getPosition()]);
  Value sumBlocks = b.createOrFold<arith::CeilDivUIOp>(
      points, math.constant(kFallbackThreads));
  Value elements = b.createOrFold<arith::MaxUIOp>(
      math.mul(points, math.constant(decoded.reduceSplit)), one);
  return {sumBlocks, none, blocks, first, elements};
}

DispatchBuilder::Launches DispatchBuilder::buildLaunches(Value family) {
  ArrayRef<iree::Kernel> kernels = workload.choice.kernels;
  ArrayRef<iree::Kernel> others = kernels.drop_back();
  SmallVector<Value> counts;
  if (others.empty()) {
    counts = countBlocks(kernels.back().number);
  } else {
    auto cases = llvm::map_to_vector(
        others, [](const iree::Kernel &kernel) { return kernel.number; });
    SmallVector<Type> types(workload.hasSlices() ? 5 : 2, b.getIndexType());
    auto choice =
        scf::IndexSwitchOp::create(b, types, family, cases, cases.size());
    OpBuilder::InsertionGuard guard(b);
    for (auto [number, kernel] : llvm::enumerate(kernels)) {
      b.createBlock(number < others.size() ? &choice.getCaseRegions()[number]
                                           : &choice.getDefaultRegion());
      scf::YieldOp::create(b, countBlocks(kernel.number));
    }
    llvm::append_range(counts, choice.getResults());
  }
  counts.resize(5);
  return {counts[0], counts[1], counts[2], counts[3], counts[4]};
}

/// `operand` is the one that the parameter is of.
Value DispatchBuilder::constantFor(const KernelParameter &parameter,
                                   Value operand, Value firstBlocks) {
  switch (parameter.kind) {
  case ParameterKind::Size:
    return operand ? size(operand, parameter.index) : extents[parameter.index];
  case ParameterKind::Stride:
    return stride(operand, parameter.index);
  case ParameterKind::Scalar:
  case ParameterKind::ScalarLow:
  case ParameterKind::ScalarHigh:
    return operand;
  case ParameterKind::Part:
    return firstBlocks;
  case ParameterKind::Pointer:
  case ParameterKind::TensorMap:
    break;
  }
  llvm_unreachable("pointers are bindings, and there are no tensor maps");
}

/// The dispatch of the kernels that sum slices. Behind the inputs, operands of
/// its operator are a constant and the slices, of the output's shape.
Value DispatchBuilder::buildSlices(IreeTarget target, Value family,
                                   const Launches &launches) {
  // Inputs come first.
  unsigned numInputs = 0;
  while (op.isInput(numInputs))
    ++numInputs;
  iree::Dispatch dispatch{
      target,
      kIreeExecutableName.str(),
      workload.slices,
      family,
      launches.sliceBlocks,
      /*arguments=*/{},
      {RankedTensorType::get(ShapedType::kDynamic,
                             op.getSliceStates().front().elementType)},
      /*resultSizes=*/{launches.sliceElements},
      /*tied=*/{-1}};
  for (const KernelParameter &parameter :
       workload.sliceSignature.getParameters()) {
    bool isInput = parameter.operand && *parameter.operand < numInputs;
    Value operand;
    if (parameter.operand)
      operand = isInput ? op->getOperand(*parameter.operand)
                        : op.getDpsInitOperand(0)->get();
    if (parameter.kind != ParameterKind::Pointer)
      dispatch.arguments.push_back(
          toI32(b, constantFor(parameter, operand, launches.firstSliceBlocks),
                parameter.kind));
    else if (isInput)
      dispatch.arguments.push_back(operand);
  }
  return iree::buildDispatch(b, dispatch)->getResult(0);
}

ValueRange DispatchBuilder::build(IreeTarget target) {
  Value family = buildFamily();
  Launches launches = buildLaunches(family);
  SmallVector<Value> operands(op->getOperands());
  // As `signatureOf` numbers them.
  if (workload.hasSlices())
    operands.push_back(buildSlices(target, family, launches));
  iree::Dispatch dispatch{target,
                          kIreeExecutableName.str(),
                          workload.choice,
                          family,
                          launches.blocks,
                          /*arguments=*/{},
                          llvm::to_vector_of<Type, 1>(op->getResultTypes()),
                          /*resultSizes=*/{},
                          /*tied=*/{}};
  dispatch.tied.assign(dispatch.results.size(), -1);
  for (Value output : op.getDpsInits()) {
    auto type = cast<RankedTensorType>(output.getType());
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (type.isDynamicDim(dim))
        dispatch.resultSizes.push_back(size(output, dim));
  }
  for (const KernelParameter &parameter : workload.signature.getParameters()) {
    Value operand = parameter.operand ? operands[*parameter.operand] : Value();
    if (parameter.kind != ParameterKind::Pointer) {
      dispatch.arguments.push_back(
          toI32(b, constantFor(parameter, operand, launches.firstBlocks),
                parameter.kind));
      continue;
    }
    bool isOutput = *parameter.operand < op->getNumOperands() &&
                    op.isOutput(*parameter.operand);
    if (isOutput && !op.readsOutput())
      continue;
    if (isOutput)
      dispatch.tied[op.getTiedOpResult(&op->getOpOperand(*parameter.operand))
                        .getResultNumber()] = dispatch.arguments.size();
    dispatch.arguments.push_back(operand);
  }
  return iree::buildDispatch(b, dispatch)->getResults();
}

void iree::describe(Choice &choice, StringRef name,
                    const KernelSignature &signature) {
  choice.name = name;
  for (const KernelParameter &parameter : signature.getParameters())
    if (parameter.kind == ParameterKind::Pointer)
      choice.isReadOnly.push_back(*parameter.access ==
                                  ukernel::ParameterAccess::Read);
    else
      ++choice.constants;
}

iree::Kernel iree::toKernel(gpu::GPUModuleOp kernel, int64_t number,
                            int64_t alignment) {
  auto entry = kernel->getAttrOfType<ukernel::EntryAttr>(
      ukernel::UKernelDialect::kEntryAttrName);
  return {kernel.getName().str(), number, entry.getThreads(),
          entry.getSharedMemoryBytes(), alignment};
}

ValueRange iree::buildDispatches(OperatorOpInterface op,
                                 const WorkloadKernels &workload,
                                 IreeTarget target) {
  return DispatchBuilder(op, workload).build(target);
}
