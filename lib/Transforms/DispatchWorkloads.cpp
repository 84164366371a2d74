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
#include "FTuner/Kernel/KernelBuilder.h"
#include "FTuner/Schedule/Grid.h"
#include "FTuner/Transforms/FamilyDispatch.h"
#include "FTuner/Transforms/FunctionWork.h"
#include "FTuner/Transforms/HostAbi.h"
#include "FTuner/Transforms/Passes.h"
#include "FTuner/Transforms/Stages.h"
#include "FTuner/Workload/Workload.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include <list>

namespace ftuner {
#define GEN_PASS_DEF_UKERNELDISPATCHWORKLOADSPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

namespace {

class WorkloadDispatcher {
public:
  WorkloadDispatcher(ModuleOp module, bool assumeAligned)
      : module(module), symbols(module), assumeAligned(assumeAligned) {}
  LogicalResult dispatch(ukernel::OperatorOpInterface op);

private:
  Value buildAligned(ImplicitLocOpBuilder &b, ukernel::OperatorOpInterface op,
                     ArrayRef<Value> extents, int64_t alignment);
  void buildLaunch(ImplicitLocOpBuilder &b, ukernel::OperatorOpInterface op,
                   ukernel::KernelOp kernel, const Grid &grid,
                   ArrayRef<Value> extents);
  FailureOr<ukernel::KernelOp> kernelFor(ukernel::OperatorOpInterface op,
                                         ukernel::FamilyAttr family,
                                         int64_t number);
  std::string nameOf(ukernel::OperatorOpInterface op);
  const std::string &prefixOf(ukernel::OperatorOpInterface op);

  ModuleOp module;
  SymbolTable symbols;
  /// Whether addresses are aligned by the caller's word.
  bool assumeAligned;
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

/// Whether every address that a vector access forms is a multiple of
/// `alignment` bytes: bases unless they are taken to be so, offsets, row
/// strides and the contiguous extents.
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
    auto type = cast<MemRefType>(operand.value.getType());
    int64_t elements = operand.elementsOf(alignment);
    elementsAlong[operand.contiguousAxis] =
        std::max(elementsAlong[operand.contiguousAxis], elements);
    auto metadata = memref::ExtractStridedMetadataOp::create(b, operand.value);
    auto [strides, offset] = type.getStridesAndOffset();
    for (int64_t dim = 0; dim + 1 < type.getRank(); ++dim)
      require(ShapedType::isDynamic(strides[dim]) ? metadata.getStrides()[dim]
                                                  : math.constant(strides[dim]),
              elements);
    Value offsetValue = ShapedType::isDynamic(offset)
                            ? Value(metadata.getOffset())
                            : math.constant(offset);
    Value address = math.mul(offsetValue, math.constant(operand.elementBytes()));
    if (!assumeAligned)
      address = math.add(
          memref::ExtractAlignedPointerAsIndexOp::create(b, operand.value),
          address);
    require(address, alignment);
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
  launch->setAttr(kSiteAttrName,
                  b.getDictionaryAttr(
                      {b.getNamedAttr("name", b.getStringAttr(current)),
                       b.getNamedAttr("workload", kernel.getWorkloadAttr())}));
}

/// The function's name and the workload's number in it. Equal workloads count
/// too, so numbers are those of explanations.
std::string WorkloadDispatcher::nameOf(ukernel::OperatorOpInterface op) {
  auto function = op->getParentOfType<FunctionOpInterface>();
  std::string name = toIdentifier(function.getName());
  return name + "_" + std::to_string(workloadsOfFunction[name]++);
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

FailureOr<ukernel::KernelOp>
WorkloadDispatcher::kernelFor(ukernel::OperatorOpInterface op,
                              ukernel::FamilyAttr family, int64_t number) {
  const std::string &prefix = prefixOf(op);
  std::string name = prefix + "_k" + std::to_string(number);
  ukernel::KernelOp &kernel = kernels[name];
  if (kernel)
    return kernel;

  auto b = OpBuilder::atBlockEnd(module.getBody());
  FailureOr<ukernel::KernelOp> built =
      buildKernel(b, op, family, name, b.getStringAttr(prefix));
  if (succeeded(built)) {
    kernel = *built;
    symbols.insert(kernel);
  }
  return built;
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
  Value family =
      buildFamilyOfShape(b, decoded.entries, decoded.generalFamily, extents);
  if (decoded.needsAlignment()) {
    Value aligned = buildAligned(b, op, extents, decoded.alignment());
    Value unaligned = buildFamilyOfShape(
        b, decoded.unalignedEntries, decoded.unalignedGeneralFamily, extents);
    family = math.select(aligned, family, unaligned);
  }

  SmallVector<int64_t> cases;
  for (unsigned used : decoded.usedFamilies())
    if (used != decoded.unalignedGeneralFamily)
      cases.push_back(used);
  auto switchOp =
      scf::IndexSwitchOp::create(b, TypeRange(), family, cases, cases.size());
  OpBuilder::InsertionGuard guard(b);
  auto buildCase = [&](Region &region, int64_t index) -> LogicalResult {
    b.createBlock(&region);
    FailureOr<ukernel::KernelOp> kernel =
        kernelFor(op, plan.getFamilies()[index], index);
    if (failed(kernel))
      return failure();
    buildLaunch(b, op, *kernel, gridOf(decoded.families[index]), extents);
    scf::YieldOp::create(b);
    return success();
  };
  for (auto [region, index] : llvm::zip_equal(switchOp.getCaseRegions(), cases))
    if (failed(buildCase(region, index)))
      return failure();
  if (failed(
          buildCase(switchOp.getDefaultRegion(), plan.getUnalignedGeneral())))
    return failure();
  op.erase();
  return success();
}

struct UKernelDispatchWorkloadsPass
    : public ftuner::impl::UKernelDispatchWorkloadsPassBase<
          UKernelDispatchWorkloadsPass> {
  using UKernelDispatchWorkloadsPassBase::UKernelDispatchWorkloadsPassBase;

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
    WorkloadDispatcher dispatcher(getOperation(), assumeAligned);
    for (ukernel::OperatorOpInterface op : workloads)
      if (failed(dispatcher.dispatch(op)))
        return signalPassFailure();
  }
};

} // namespace
