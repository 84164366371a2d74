//===- DispatchWorkloads.cpp - Workloads to launches ------------*- C++ -*-===//
//
// Each planned workload on memrefs becomes
//
//   class = aligned ? (family of the first box that holds the shape)
//                   : the family for any operands
//   scf.index_switch class, each case one launch
//
// and each family that a case names becomes a ukernel.kernel. Workloads of the
// same form and plan share their kernels.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Dialect/UKernel/Utils/IndexArithmetic.h"
#include "FTuner/Schedule/Grid.h"
#include "FTuner/Transforms/FunctionWork.h"
#include "FTuner/Transforms/HostAbi.h"
#include "FTuner/Transforms/Passes.h"
#include "FTuner/Transforms/Stages.h"
#include "FTuner/Workload/Workload.h"
#include "FamilyDispatch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include <list>

namespace ftuner {
#define GEN_PASS_DEF_UKERNELDISPATCHWORKLOADSPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

namespace {

/// Operands that kernels move in vectors, and the axis each is contiguous on.
struct VectorOperand {
  Value memory;
  unsigned contiguousAxis;
};

class WorkloadDispatcher {
public:
  WorkloadDispatcher(ModuleOp module) : module(module), symbols(module) {}
  LogicalResult dispatch(ukernel::OperatorOpInterface op);

private:
  void makeInnermostContiguous(ukernel::OperatorOpInterface op);
  SmallVector<VectorOperand> vectorOperands(ukernel::OperatorOpInterface op);
  Value buildAligned(ImplicitLocOpBuilder &b, ukernel::OperatorOpInterface op,
                     ArrayRef<Value> extents, int64_t alignment);
  void buildLaunch(ImplicitLocOpBuilder &b, ukernel::OperatorOpInterface op,
                   ukernel::KernelOp kernel, const Grid &grid,
                   ArrayRef<Value> extents);
  ukernel::KernelOp kernelFor(ukernel::OperatorOpInterface op,
                              ukernel::FamilyAttr family, int64_t number);
  void buildTile(ImplicitLocOpBuilder &b, ukernel::KernelOp kernel,
                 ukernel::OperatorOpInterface op, DenseI64ArrayAttr sizes);
  std::string nameOf(ukernel::OperatorOpInterface op);
  const std::string &prefixOf(ukernel::OperatorOpInterface op);

  ModuleOp module;
  SymbolTable symbols;
  /// The first workload of each kind, and the prefix of its kernels' names.
  struct Representative {
    OwningOpRef<ukernel::OperatorOpInterface> workload;
    std::string prefix;
  };
  std::list<Representative> representatives;
  /// Name of the workload that is dispatched.
  std::string current;
  llvm::StringMap<ukernel::KernelOp> kernels;
  llvm::StringMap<int64_t> workloadsOfFunction;
};

bool isInnermostContiguous(MemRefType type) {
  if (type.getRank() == 0)
    return true;
  auto [strides, offset] = type.getStridesAndOffset();
  return strides.back() == 1;
}

/// Kernels want a unit innermost stride; other views are copied.
void WorkloadDispatcher::makeInnermostContiguous(
    ukernel::OperatorOpInterface op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (!type || isInnermostContiguous(type))
      continue;
    Value view = operand.get();
    SmallVector<Value> dynamicSizes;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (type.isDynamicDim(dim))
        dynamicSizes.push_back(memref::DimOp::create(b, view, dim));
    Value copy = memref::AllocOp::create(
        b, MemRefType::get(type.getShape(), type.getElementType()),
        dynamicSizes);
    bool isOutput = &operand == &op.getOutputOperand();
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

SmallVector<VectorOperand>
WorkloadDispatcher::vectorOperands(ukernel::OperatorOpInterface op) {
  auto contiguousAxis = [&](OpOperand &operand) -> std::optional<unsigned> {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (!isa<MemRefType>(operand.get().getType()) || map.getNumResults() == 0)
      return std::nullopt;
    auto axis = dyn_cast<AffineDimExpr>(map.getResults().back());
    return axis ? std::optional(axis.getPosition()) : std::nullopt;
  };
  // What is read or written once, is so along the rows of the output.
  std::optional<unsigned> written = contiguousAxis(op.getOutputOperand());
  SmallVector<VectorOperand> result;
  for (OpOperand &operand : op->getOpOperands())
    if (std::optional<unsigned> axis = contiguousAxis(operand))
      if (op.isInput(operand.getOperandNumber()) || axis == written)
        result.push_back({operand.get(), *axis});
  return result;
}

/// Whether every address that a vector access forms is a multiple of
/// `alignment` bytes: bases, row strides and the contiguous extents.
Value WorkloadDispatcher::buildAligned(ImplicitLocOpBuilder &b,
                                       ukernel::OperatorOpInterface op,
                                       ArrayRef<Value> extents,
                                       int64_t alignment) {
  ukernel::IndexArithmetic math(b);
  Value remainders = math.constant(0);
  auto require = [&](Value value, int64_t multiple) {
    remainders =
        b.createOrFold<arith::OrIOp>(remainders, math.rem(value, multiple));
  };
  // Axes that are contiguous, and of how many elements multiples.
  llvm::MapVector<unsigned, int64_t> elementsAlong;
  for (const VectorOperand &operand : vectorOperands(op)) {
    auto type = cast<MemRefType>(operand.memory.getType());
    int64_t bytes = type.getElementTypeBitWidth() / 8;
    int64_t elements = alignment / bytes;
    elementsAlong[operand.contiguousAxis] =
        std::max(elementsAlong[operand.contiguousAxis], elements);
    auto metadata = memref::ExtractStridedMetadataOp::create(b, operand.memory);
    auto [strides, offset] = type.getStridesAndOffset();
    for (int64_t dim = 0; dim + 1 < type.getRank(); ++dim)
      require(ShapedType::isDynamic(strides[dim]) ? metadata.getStrides()[dim]
                                                  : math.constant(strides[dim]),
              elements);
    Value base =
        memref::ExtractAlignedPointerAsIndexOp::create(b, operand.memory);
    Value offsetValue = ShapedType::isDynamic(offset)
                            ? Value(metadata.getOffset())
                            : math.constant(offset);
    require(math.add(base, math.mul(offsetValue, math.constant(bytes))),
            alignment);
  }
  for (auto [axis, elements] : elementsAlong)
    require(extents[axis], elements);
  return math.compare(arith::CmpIPredicate::eq, remainders, math.constant(0));
}

void WorkloadDispatcher::buildLaunch(ImplicitLocOpBuilder &b,
                                     ukernel::OperatorOpInterface op,
                                     ukernel::KernelOp kernel, const Grid &grid,
                                     ArrayRef<Value> extents) {
  ukernel::IndexArithmetic math(b);
  auto [firstBlocks, blocks] = launchOf(math, grid, extents);
  auto launch = ukernel::LaunchOp::create(
      b, FlatSymbolRefAttr::get(kernel.getSymNameAttr()), blocks,
      op->getOperands(), extents, /*strides=*/ValueRange(), firstBlocks);
  launch->setAttr(kSiteAttrName, b.getStringAttr(current));
}

/// The function's name and the workload's number in it. Equal workloads count
/// too, so numbers are those of explanations.
std::string WorkloadDispatcher::nameOf(ukernel::OperatorOpInterface op) {
  auto function = op->getParentOfType<FunctionOpInterface>();
  std::string name = toIdentifier(function.getName());
  return name + "_" + std::to_string(workloadsOfFunction[name]++);
}

/// Whether two workloads compute the same function of their operands.
static bool computeTheSame(ukernel::OperatorOpInterface lhs,
                           ukernel::OperatorOpInterface rhs) {
  if (!llvm::equal(lhs->getOperandTypes(), rhs->getOperandTypes()))
    return false;
  DenseMap<Value, Value> inner;
  for (auto [a, b] : llvm::zip_equal(lhs->getOperands(), rhs->getOperands()))
    inner[a] = b;
  auto sameValue = [&](Value a, Value b) {
    auto it = inner.find(a);
    return success(it != inner.end() ? it->second == b : a == b);
  };
  auto mark = [&](Value a, Value b) { inner[a] = b; };
  return OperationEquivalence::isEquivalentTo(
      lhs, rhs, sameValue, mark, OperationEquivalence::IgnoreLocations);
}

const std::string &
WorkloadDispatcher::prefixOf(ukernel::OperatorOpInterface op) {
  for (Representative &known : representatives)
    if (computeTheSame(known.workload.get(), op))
      return known.prefix;
  representatives.push_back(
      {OwningOpRef<ukernel::OperatorOpInterface>(op.clone()), current});
  return representatives.back().prefix;
}

ukernel::KernelOp WorkloadDispatcher::kernelFor(ukernel::OperatorOpInterface op,
                                                ukernel::FamilyAttr family,
                                                int64_t number) {
  const std::string &prefix = prefixOf(op);
  std::string name = prefix + "_k" + std::to_string(number);
  ukernel::KernelOp &kernel = kernels[name];
  if (kernel)
    return kernel;

  ImplicitLocOpBuilder b(op.getLoc(), module.getContext());
  b.setInsertionPointToEnd(module.getBody());
  kernel = ukernel::KernelOp::create(b, name, family.getSchedule(),
                                     b.getStringAttr(prefix));
  symbols.insert(kernel);
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

void WorkloadDispatcher::buildTile(ImplicitLocOpBuilder &b,
                                   ukernel::KernelOp kernel,
                                   ukernel::OperatorOpInterface op,
                                   DenseI64ArrayAttr tileSizes) {
  OpBuilder::InsertionGuard guard(b);
  auto tile = ukernel::TileOp::create(b, tileSizes);
  b.createBlock(&tile.getBody());
  // Constants are part of the kernel, not parameters.
  Block &body = kernel.getBody().front();
  SmallVector<Value> operands(
      body.getArguments().take_front(op->getNumOperands()));
  auto constants = OpBuilder::atBlockBegin(&body);
  for (auto [operand, original] : llvm::zip_equal(operands, op->getOperands()))
    if (Operation *definition = original.getDefiningOp();
        definition && definition->hasTrait<OpTrait::ConstantLike>() &&
        !isa<MemRefType>(original.getType()))
      operand = constants.clone(*definition)->getResult(0);
  op.cloneIntoTile(b, operands, tileSizes.asArrayRef());
}

/// Notes on the plan that it describes the kernels of a workload.
static void recordWorkload(ukernel::PlanOp plan, StringRef workload) {
  SmallVector<Attribute> names;
  if (auto known = plan->getAttrOfType<ArrayAttr>(kWorkloadsAttrName))
    llvm::append_range(names, known);
  Attribute name = StringAttr::get(plan.getContext(), workload);
  if (!llvm::is_contained(names, name))
    names.push_back(name);
  plan->setAttr(kWorkloadsAttrName, ArrayAttr::get(plan.getContext(), names));
}

LogicalResult WorkloadDispatcher::dispatch(ukernel::OperatorOpInterface op) {
  if (!op.getPlanAttr())
    return op->emitOpError("expected a plan");
  auto planOp = symbols.lookup<ukernel::PlanOp>(op.getPlanAttr().getValue());
  if (!planOp)
    return op->emitOpError("expected a ukernel.plan named ")
           << op.getPlanAttr();
  ukernel::PlanAttr plan = planOp.getPlan();
  Plan decoded = toPlan(plan);
  makeInnermostContiguous(op);
  // Only the search asks for symbols; kernels do not differ by them.
  op->removeAttr(ukernel::UKernelDialect::kExtentsAttrName);
  current = nameOf(op);
  recordWorkload(planOp, prefixOf(op));

  ImplicitLocOpBuilder b(op.getLoc(), op);
  ukernel::IndexArithmetic math(b);
  SmallVector<Value> extents;
  for (unsigned axis = 0; axis < op.getNumAxes(); ++axis) {
    auto [source, dim] = op.getExtentSource(axis);
    extents.push_back(b.createOrFold<memref::DimOp>(source, dim));
  }
  llvm::SmallSetVector<int64_t, 8> reachable;
  for (ukernel::ChoiceAttr choice : plan.getChoices())
    reachable.insert(choice.getFamily());
  reachable.insert(plan.getGeneral());
  Value family =
      buildFamilyOfShape(b, decoded.entries, decoded.generalFamily, extents);
  if (decoded.needsAlignment()) {
    Value aligned = buildAligned(b, op, extents, decoded.alignment());
    Value unaligned = buildFamilyOfShape(b, decoded.unalignedEntries,
                                         decoded.unalignedGeneralFamily, extents);
    family = math.select(aligned, family, unaligned);
    for (ukernel::ChoiceAttr choice : plan.getUnaligned())
      reachable.insert(choice.getFamily());
    reachable.insert(plan.getUnalignedGeneral());
  }

  reachable.remove(plan.getUnalignedGeneral());
  SmallVector<int64_t> cases(reachable.begin(), reachable.end());
  llvm::sort(cases);
  auto switchOp =
      scf::IndexSwitchOp::create(b, TypeRange(), family, cases, cases.size());
  OpBuilder::InsertionGuard guard(b);
  auto buildCase = [&](Region &region, int64_t index) {
    b.createBlock(&region);
    buildLaunch(b, op, kernelFor(op, plan.getFamilies()[index], index),
                gridOf(decoded.families[index]), extents);
    scf::YieldOp::create(b);
  };
  for (auto [region, index] : llvm::zip_equal(switchOp.getCaseRegions(), cases))
    buildCase(region, index);
  buildCase(switchOp.getDefaultRegion(), plan.getUnalignedGeneral());
  op.erase();
  return success();
}

struct UKernelDispatchWorkloadsPass
    : public ftuner::impl::UKernelDispatchWorkloadsPassBase<
          UKernelDispatchWorkloadsPass> {
  void runOnOperation() override {
    if (failed(
            expectStages(getOperation(), getArgument(),
                         {Stage::Formed, Stage::Planned, Stage::Bufferized})))
      return signalPassFailure();
    SmallVector<ukernel::OperatorOpInterface> workloads;
    getOperation().walk([&](ukernel::OperatorOpInterface op) {
      if (!op->getParentOfType<ukernel::KernelOp>())
        workloads.push_back(op);
    });
    WorkloadDispatcher dispatcher(getOperation());
    for (ukernel::OperatorOpInterface op : workloads)
      if (failed(dispatcher.dispatch(op)))
        return signalPassFailure();
  }
};

} // namespace
