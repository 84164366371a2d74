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
// A plan of kernels for an exact architecture has a portable one beside it:
// then both are there, in the branches of an scf.if on ukernel.exact_image.
//
// A family with split-K slices launches into a buffer of slices, which a
// linalg.generic, a fallback kernel in the end, adds up (SplitReduction.h), or
// which later launches of the family merge. The buffer is as large as the
// families of the shape's sizes ask for: whether operands are aligned is not
// known before the call, its workspace is.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Analysis/KernelWork.h"
#include "FTuner/Analysis/Stages.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Dialect/UKernel/IR/Images.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Dialect/UKernel/Utils/IndexArithmetic.h"
#include "FTuner/Dispatch/IR/FamilyDispatch.h"
#include "FTuner/HostAbi/HostAbi.h"
#include "FTuner/Kernel/Fallback/FallbackKernels.h"
#include "FTuner/Kernel/KernelBuilder.h"
#include "FTuner/Kernel/SplitReduction.h"
#include "FTuner/Schedule/Grid.h"
#include "FTuner/Transforms/Passes.h"
#include "FTuner/Workload/Pointwise.h"
#include "FTuner/Workload/Workload.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/MapVector.h"
#include <list>

namespace ftuner {
#define GEN_PASS_DEF_UKERNELDISPATCHWORKLOADSPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

namespace {

/// A plan, and the prefix of the names of its kernels.
struct NamedPlan {
  NamedPlan(ukernel::PlanOp op, StringAttr prefix)
      : attribute(op.getPlan()), plan(toPlan(attribute)), prefix(prefix) {}

  ukernel::PlanAttr attribute;
  const Plan &plan;
  StringAttr prefix;
};

class WorkloadDispatcher {
public:
  /// With `isPortable`, plans for the exact architecture and portable ones
  /// share the work; else the former have all of it.
  WorkloadDispatcher(ModuleOp module, bool assumeAligned, bool isPortable)
      : module(module), symbols(module), assumeAligned(assumeAligned),
        isPortable(isPortable) {}
  LogicalResult dispatch(ukernel::OperatorOpInterface op);

private:
  Value buildAligned(ImplicitLocOpBuilder &b, ukernel::OperatorOpInterface op,
                     ArrayRef<Value> extents, int64_t alignment);
  LogicalResult buildLaunch(ImplicitLocOpBuilder &b,
                            ukernel::OperatorOpInterface op,
                            ukernel::FamilyAttr family, const Twine &name,
                            StringAttr prefix, ArrayRef<Value> extents);
  Value countSlices(ImplicitLocOpBuilder &b, const Plan &plan,
                    ArrayRef<Value> extents);
  SmallVector<Value, 1> buildSlices(ImplicitLocOpBuilder &b,
                                    ukernel::OperatorOpInterface op,
                                    ArrayRef<NamedPlan> plans,
                                    ArrayRef<Value> extents);
  LogicalResult buildDispatch(ImplicitLocOpBuilder &b,
                              ukernel::OperatorOpInterface op,
                              const NamedPlan &plan, ArrayRef<Value> extents,
                              ValueRange slices);
  LogicalResult buildSplit(ImplicitLocOpBuilder &b,
                           ukernel::OperatorOpInterface op,
                           ukernel::FamilyAttr family, const Twine &name,
                           StringAttr prefix, ArrayRef<Value> extents,
                           ValueRange slices);
  LogicalResult buildWhole(ImplicitLocOpBuilder &b,
                           ukernel::OperatorOpInterface op,
                           ukernel::FamilyAttr family, const Twine &name,
                           StringAttr prefix, ArrayRef<Value> extents);
  FailureOr<ukernel::KernelOp> kernelFor(ukernel::OperatorOpInterface op,
                                         ukernel::FamilyAttr family,
                                         const Twine &name, StringAttr prefix);
  std::string nameOf(ukernel::OperatorOpInterface op);
  const std::string &prefixOf(ukernel::OperatorOpInterface op);

  ModuleOp module;
  SymbolTable symbols;
  /// Whether addresses are aligned by the caller's word.
  bool assumeAligned;
  bool isPortable;
  /// The first workload of each kind, and the prefix of its kernels' names.
  struct Representative {
    OwningOpRef<ukernel::OperatorOpInterface> workload;
    std::string prefix;
  };
  std::list<Representative> representatives;
  /// Name of the workload that is dispatched, and `ukernel.site` of its
  /// operator.
  std::string current;
  DictionaryAttr site;
  llvm::StringMap<ukernel::KernelOp> kernels;
  llvm::StringMap<int64_t> workloadsOfFunction;
};

namespace {
/// Rows of a pointwise operator, which whole vectors must fill if some operand
/// lies along them.
struct PointRows {
  ukernel::PointwiseOp op;
  /// Views the operator's workload, which is kept here.
  std::shared_ptr<Workload> workload;
  bool hasTrips = false;
  int64_t widestBytes = 1;
  /// The operand and dimension that have the length of rows.
  Value source;
  int64_t dim = 0;

  /// Returns true if vectors of an operand begin at positions of its rows, and
  /// not at numbers of points alone.
  bool isAlongRows(Value operand) const {
    for (auto [value, described] :
         llvm::zip_equal(op->getOperands(), workload->operands))
      if (value == operand &&
          PointwiseView(*workload).accessOf(described) == PointAccess::Row)
        return true;
    return false;
  }
};
} // namespace

static std::optional<PointRows> pointRows(ukernel::OperatorOpInterface op) {
  auto points = dyn_cast<ukernel::PointwiseOp>(op.getOperation());
  if (!points)
    return std::nullopt;
  PointRows rows;
  rows.op = points;
  rows.workload = std::make_shared<Workload>(toUnrangedWorkload(op));
  PointwiseView view(*rows.workload);
  rows.hasTrips = view.hasTrips();
  rows.widestBytes = view.widestBytes();
  std::tie(rows.source, rows.dim) = op.getExtentSources(0).back();
  return rows;
}

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
  SmallVector<VectorOperand> operands = vectorOperands(op);
  std::optional<PointRows> rows = pointRows(op);
  for (const VectorOperand &operand : operands) {
    auto type = cast<MemRefType>(operand.value.getType());
    int64_t elements = operand.elementsOf(alignment);
    auto metadata = memref::ExtractStridedMetadataOp::create(b, operand.value);
    auto [strides, offset] = type.getStridesAndOffset();
    bool hasTrips = !rows || rows->isAlongRows(operand.value);
    for (int64_t dim = 0; hasTrips && dim + 1 < type.getRank(); ++dim)
      require(ShapedType::isDynamic(strides[dim]) ? metadata.getStrides()[dim]
                                                  : math.constant(strides[dim]),
              elements);
    Value offsetValue = ShapedType::isDynamic(offset)
                            ? Value(metadata.getOffset())
                            : math.constant(offset);
    Value address =
        math.mul(offsetValue, math.constant(operand.elementBytes()));
    if (!assumeAligned)
      address = math.add(
          memref::ExtractAlignedPointerAsIndexOp::create(b, operand.value),
          address);
    require(address, alignment);
  }
  if (rows) {
    if (rows->hasTrips)
      require(b.createOrFold<memref::DimOp>(rows->source, rows->dim),
              std::max<int64_t>(alignment / rows->widestBytes, 1));
  } else {
    for (auto [axis, elements] : elementsAlongAxes(operands, alignment))
      require(extents[axis], elements);
  }
  return math.compare(arith::CmpIPredicate::eq, remainders, math.constant(0));
}

/// `ukernel.site` of a launch for a workload, with so many slices.
static DictionaryAttr siteOf(Builder &b, DictionaryAttr site, StringRef name,
                             StringAttr workload, int64_t slices) {
  NamedAttrList fields(site);
  fields.set("name", b.getStringAttr(name));
  fields.set("workload", workload);
  if (slices != 1)
    fields.set("slices", b.getStringAttr(Twine(slices)));
  return fields.getDictionary(b.getContext());
}

LogicalResult WorkloadDispatcher::buildLaunch(ImplicitLocOpBuilder &b,
                                              ukernel::OperatorOpInterface op,
                                              ukernel::FamilyAttr family,
                                              const Twine &name,
                                              StringAttr prefix,
                                              ArrayRef<Value> extents) {
  FailureOr<ukernel::KernelOp> kernel = kernelFor(op, family, name, prefix);
  if (failed(kernel))
    return failure();
  ukernel::IndexArithmetic math(b);
  auto [firstBlocks, blocks] =
      launchOf(math, gridOf(toKernelFamily(family)), extents);
  auto launch = ukernel::LaunchOp::create(
      b, FlatSymbolRefAttr::get(kernel->getSymNameAttr()), blocks,
      op->getOperands(), extents, /*strides=*/ValueRange(), firstBlocks);
  launch->setAttr(kSiteAttrName,
                  siteOf(b, site, current, prefix, family.getSplit()));
  return success();
}

/// Returns the count of numbers that slices of the families that may serve the
/// shape leave, 0 where they do not split; null for a plan that never does.
Value WorkloadDispatcher::countSlices(ImplicitLocOpBuilder &b, const Plan &plan,
                                      ArrayRef<Value> extents) {
  auto slicesOf = [&](unsigned family) -> unsigned {
    const KernelFamily &chosen = plan.families[family];
    return chosen.reduceSplit == 1 ? 0 : chosen.path().numSliceStates(chosen);
  };
  if (llvm::none_of(plan.usedFamilies(), slicesOf))
    return {};
  ukernel::IndexArithmetic math(b);
  auto countFor = [&](std::vector<DispatchEntry> entries, unsigned otherwise) {
    for (DispatchEntry &entry : entries)
      entry.family = slicesOf(entry.family);
    return buildFamilyOfShape(b, entries, slicesOf(otherwise), extents,
                              plan.families.front().reduced());
  };
  Value count = countFor(plan.entries, plan.generalFamily);
  if (plan.needsAlignment()) {
    Value other = countFor(plan.unalignedEntries, plan.unalignedGeneralFamily);
    if (math.known(other) != 0)
      count = math.select(math.less(count, other), other, count);
  }
  return count;
}

/// The buffers of slices for whichever plan serves the shape; none for plans
/// that never split.
SmallVector<Value, 1> WorkloadDispatcher::buildSlices(
    ImplicitLocOpBuilder &b, ukernel::OperatorOpInterface op,
    ArrayRef<NamedPlan> plans, ArrayRef<Value> extents) {
  ukernel::IndexArithmetic math(b);
  Value count;
  for (const NamedPlan &plan : plans) {
    Value other = countSlices(b, plan.plan, extents);
    count = count && other ? math.select(math.less(count, other), other, count)
                           : (count ? count : other);
  }
  SmallVector<Value, 1> slices;
  if (!count)
    return slices;
  for (const SliceBuffer &buffer : sliceBuffersOf(op)) {
    SmallVector<Value> sizes = {count};
    for (auto [dim, axis] : llvm::enumerate(buffer.axes)) {
      if (!buffer.type.isDynamicDim(dim + 1))
        continue;
      if (axis < extents.size()) {
        sizes.push_back(extents[axis]);
        continue;
      }
      auto [source, ofSource] = op.getExtentSource(axis);
      sizes.push_back(b.createOrFold<memref::DimOp>(source, ofSource));
    }
    slices.push_back(memref::AllocOp::create(b, buffer.type, sizes));
  }
  return slices;
}

LogicalResult WorkloadDispatcher::buildSplit(
    ImplicitLocOpBuilder &b, ukernel::OperatorOpInterface op,
    ukernel::FamilyAttr family, const Twine &name, StringAttr prefix,
    ArrayRef<Value> extents, ValueRange slices) {
  // One slice behind the other, as the kernel takes them.
  SmallVector<Value, 1> states;
  for (Value buffer : slices) {
    SmallVector<ReassociationIndices> groups = {{0, 1}};
    auto rank = cast<MemRefType>(buffer.getType()).getRank();
    for (int64_t dim = 2; dim < rank; ++dim)
      groups.push_back({dim});
    states.push_back(memref::CollapseShapeOp::create(b, buffer, groups));
  }
  auto slice = cast<ukernel::OperatorOpInterface>(op.buildSlice(b, states));
  LogicalResult launched = buildLaunch(b, slice, family, name, prefix, extents);
  slice->erase();
  if (failed(launched))
    return failure();
  if (op.mergesInKernels()) {
    auto later = op.buildLaterSlices(b, states);
    for (auto [number, operation] : llvm::enumerate(later)) {
      auto sliceOp = cast<ukernel::OperatorOpInterface>(operation);
      launched = buildLaunch(b, sliceOp, family, name + "_" + Twine(number + 1),
                             prefix, extents);
      sliceOp->erase();
      if (failed(launched))
        return failure();
    }
    return success();
  }
  auto merges = op.buildMerge(b, family.getSplit(), slices);
  for (auto [number, merge] : llvm::enumerate(merges)) {
    std::string suffix = number == 0 ? "_sum" : "_sum" + std::to_string(number);
    merge->setAttr(
        kKernelAttrName,
        b.getDictionaryAttr(
            {b.getNamedAttr("name", b.getStringAttr(name + suffix)),
             b.getNamedAttr(
                 "alignment",
                 b.getI64IntegerAttr(toKernelFamily(family).alignment())),
             b.getNamedAttr(
                 "site", siteOf(b, site, current, prefix, family.getSplit())),
             b.getNamedAttr("use", ukernel::UseAttr::get(b.getContext(), family,
                                                         prefix))}));
  }
  return success();
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
                              ukernel::FamilyAttr family, const Twine &name,
                              StringAttr prefix) {
  ukernel::KernelOp &kernel = kernels[name.str()];
  if (kernel)
    return kernel;

  auto b = OpBuilder::atBlockEnd(module.getBody());
  FailureOr<ukernel::KernelOp> built =
      buildKernel(b, op, family, name.str(), prefix);
  if (succeeded(built)) {
    kernel = *built;
    symbols.insert(kernel);
  }
  return built;
}

/// Whether a buffer of slices may be part of the workspace: its size must not
/// depend on the position in a loop.
static bool mayHaveSlices(ukernel::OperatorOpInterface op) {
  if (!op.supportsSlices())
    return false;
  if (llvm::none_of(op.getStaticExtents(), ShapedType::isDynamic))
    return true;
  auto function = op->getParentOfType<FunctionOpInterface>();
  Block &entry = function.getFunctionBody().front();
  return entry.findAncestorOpInBlock(*op) &&
         !op->getParentOfType<LoopLikeOpInterface>();
}

/// The same kernel for the whole reduce axis; it stands for the plan's family.
LogicalResult WorkloadDispatcher::buildWhole(ImplicitLocOpBuilder &b,
                                             ukernel::OperatorOpInterface op,
                                             ukernel::FamilyAttr family,
                                             const Twine &name,
                                             StringAttr prefix,
                                             ArrayRef<Value> extents) {
  if (failed(buildLaunch(b, op, wholeFamily(family), name, prefix, extents)))
    return failure();
  kernels[name.str()]->setAttr(kPlannedFamilyAttrName, family);
  return success();
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
  makeInnermostContiguous(op);
  // Kernels do not differ by symbols, for which only the search asks, nor by
  // the reasons of copies.
  op->removeAttr(ukernel::UKernelDialect::kExtentsAttrName);
  site = ftuner::siteOf(op);
  op->removeAttr(kCopyAttrName);
  current = nameOf(op);
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<NamedPlan, 2> plans;
  auto addPlan = [&](ukernel::PlanOp added, const Twine &prefix) {
    plans.emplace_back(added, b.getStringAttr(prefix));
    recordWorkload(added, plans.back().prefix);
  };
  const std::string &prefix = prefixOf(op);
  addPlan(planOp, prefix);
  if (FlatSymbolRefAttr portable = planOp.getPortableAttr();
      portable && isPortable)
    addPlan(symbols.lookup<ukernel::PlanOp>(portable.getValue()),
            prefix + ukernel::kPortableSuffix);

  SmallVector<Value> extents;
  for (auto [axis, known] : llvm::enumerate(op.getStaticExtents())) {
    if (ShapedType::isStatic(known)) {
      extents.push_back(arith::ConstantIndexOp::create(b, known));
      continue;
    }
    Value extent;
    for (auto [source, dim] : op.getExtentSources(axis)) {
      Value size = b.createOrFold<memref::DimOp>(source, dim);
      extent = extent ? b.createOrFold<arith::MulIOp>(extent, size) : size;
    }
    extents.push_back(extent);
  }
  SmallVector<Value, 1> slices;
  if (mayHaveSlices(op))
    slices = buildSlices(b, op, plans, extents);
  if (plans.size() == 1) {
    if (failed(buildDispatch(b, op, plans.front(), extents, slices)))
      return failure();
  } else {
    auto branch = scf::IfOp::create(b, ukernel::ExactImageOp::create(b),
                                    /*withElseRegion=*/true);
    Block *const blocks[] = {branch.thenBlock(), branch.elseBlock()};
    for (auto [plan, block] : llvm::zip_equal(plans, blocks)) {
      b.setInsertionPoint(block->getTerminator());
      if (failed(buildDispatch(b, op, plan, extents, slices)))
        return failure();
    }
  }
  op.erase();
  return success();
}

/// The dispatch over the families of one plan.
LogicalResult WorkloadDispatcher::buildDispatch(ImplicitLocOpBuilder &b,
                                                ukernel::OperatorOpInterface op,
                                                const NamedPlan &named,
                                                ArrayRef<Value> extents,
                                                ValueRange slices) {
  const Plan &decoded = named.plan;
  StringAttr prefix = named.prefix;
  ukernel::IndexArithmetic math(b);
  AxisSet reduced = decoded.families.front().reduced();
  Value family = buildFamilyOfShape(b, decoded.entries, decoded.generalFamily,
                                    extents, reduced);
  if (decoded.needsAlignment()) {
    Value aligned = buildAligned(b, op, extents, decoded.alignment());
    Value unaligned =
        buildFamilyOfShape(b, decoded.unalignedEntries,
                           decoded.unalignedGeneralFamily, extents, reduced);
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
    ukernel::FamilyAttr chosen = named.attribute.getFamilies()[index];
    std::string name = prefix.str() + "_k" + std::to_string(index);
    LogicalResult built = success();
    if (chosen.getSplit() == 1)
      built = buildLaunch(b, op, chosen, name, prefix, extents);
    else if (!slices.empty())
      built = buildSplit(b, op, chosen, name, prefix, extents, slices);
    else
      built = buildWhole(b, op, chosen, name + "_whole", prefix, extents);
    scf::YieldOp::create(b);
    return built;
  };
  for (auto [region, index] : llvm::zip_equal(switchOp.getCaseRegions(), cases))
    if (failed(buildCase(region, index)))
      return failure();
  return buildCase(switchOp.getDefaultRegion(), decoded.unalignedGeneralFamily);
}

/// Whether each plan with families of an exact architecture has a portable one.
static bool havePortablePlans(ModuleOp module,
                              ArrayRef<ukernel::OperatorOpInterface> ops) {
  return llvm::all_of(ops, [&](ukernel::OperatorOpInterface op) {
    auto plan = op.getPlanAttr()
                    ? SymbolTable::lookupNearestSymbolFrom<ukernel::PlanOp>(
                          module, op.getPlanAttr())
                    : ukernel::PlanOp();
    return !plan || plan.getPortableAttr() ||
           !toPlan(plan.getPlan()).needsExactArchitecture();
  });
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
    WorkloadDispatcher dispatcher(getOperation(), assumeAligned,
                                  havePortablePlans(getOperation(), workloads));
    for (ukernel::OperatorOpInterface op : workloads)
      if (failed(dispatcher.dispatch(op)))
        return signalPassFailure();
  }
};

} // namespace
