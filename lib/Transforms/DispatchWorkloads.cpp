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
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Dispatch/Intervals.h"
#include "FTuner/Transforms/FunctionWork.h"
#include "FTuner/Transforms/HostAbi.h"
#include "FTuner/Transforms/Passes.h"
#include "FTuner/Transforms/PlanAttributes.h"
#include "FTuner/Transforms/Stages.h"
#include "FTuner/Workload/Workload.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include <list>

namespace ftuner {
#define GEN_PASS_DEF_UKERNELDISPATCHWORKLOADSPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

namespace {

/// More intervals than this become a switch over their sizes, a jump table in
/// the end, where those are few enough for the code; others are compared.
constexpr size_t kMaxComparedIntervals = 8;
constexpr int64_t kMaxSwitchedSizes = 512;

/// Unsigned index arithmetic on the host.
struct HostMath {
  ImplicitLocOpBuilder &b;

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  Value add(Value lhs, Value rhs) {
    return b.createOrFold<arith::AddIOp>(lhs, rhs);
  }
  Value sub(Value lhs, Value rhs) {
    return b.createOrFold<arith::SubIOp>(lhs, rhs);
  }
  Value mul(Value lhs, Value rhs) {
    return b.createOrFold<arith::MulIOp>(lhs, rhs);
  }
  Value div(Value lhs, int64_t rhs) {
    return b.createOrFold<arith::DivUIOp>(lhs, constant(rhs));
  }
  Value div(Value lhs, Value rhs) {
    return b.createOrFold<arith::DivUIOp>(lhs, rhs);
  }
  Value rem(Value lhs, int64_t rhs) {
    return b.createOrFold<arith::RemUIOp>(lhs, constant(rhs));
  }
  Value ceilDiv(Value lhs, int64_t rhs) {
    return div(add(lhs, constant(rhs - 1)), rhs);
  }
  Value compare(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return b.createOrFold<arith::CmpIOp>(predicate, lhs, rhs);
  }
  Value both(Value lhs, Value rhs) {
    return b.createOrFold<arith::AndIOp>(lhs, rhs);
  }
  Value select(Value condition, Value lhs, Value rhs) {
    return b.createOrFold<arith::SelectOp>(condition, lhs, rhs);
  }
  Value boolean(bool value) {
    return arith::ConstantOp::create(b, b.getBoolAttr(value));
  }
  Value atMost(Value size, int64_t hi) {
    return compare(arith::CmpIPredicate::sle, size, constant(hi));
  }
  /// Whether a size, which is at least `least`, is in the range.
  Value isInside(Value size, const SizeRange &range, int64_t least) {
    Value result = boolean(true);
    if (range.min > least)
      result = both(result, compare(arith::CmpIPredicate::sge, size,
                                    constant(range.min)));
    if (range.max)
      result = both(result, atMost(size, *range.max));
    return result;
  }
};

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
                   ukernel::PlanAttr plan, int64_t family,
                   ArrayRef<Value> extents);
  ukernel::KernelOp kernelFor(ukernel::OperatorOpInterface op,
                              ukernel::FamilyAttr family, int64_t number);
  void buildTile(ImplicitLocOpBuilder &b, ukernel::KernelOp kernel,
                 ukernel::OperatorOpInterface op, ukernel::UKernelAttr ukernel);
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
void WorkloadDispatcher::makeInnermostContiguous(ukernel::OperatorOpInterface op) {
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
  HostMath math{b};
  Value remainders = math.constant(0);
  auto require = [&](Value value, int64_t multiple) {
    remainders =
        b.createOrFold<arith::OrIOp>(remainders, math.rem(value, multiple));
  };
  llvm::SmallSetVector<unsigned, 3> contiguousAxes;
  for (const VectorOperand &operand : vectorOperands(op)) {
    auto type = cast<MemRefType>(operand.memory.getType());
    int64_t bytes = type.getElementTypeBitWidth() / 8;
    int64_t elements = alignment / bytes;
    contiguousAxes.insert(operand.contiguousAxis);
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
  for (unsigned axis : contiguousAxes)
    require(extents[axis], alignment / 4);
  return math.compare(arith::CmpIPredicate::eq, remainders, math.constant(0));
}

/// The least size that a launch can see: without a row or a column nothing is
/// launched, but a sum over nothing is.
static int64_t leastSize(unsigned axis) { return axis == Workload::kK ? 0 : 1; }

/// Whether a size is in all ranges of a box but that of one axis, `but`.
static Value buildInside(HostMath &math, ArrayRef<SizeRange> box,
                         ArrayRef<Value> extents,
                         std::optional<unsigned> but = std::nullopt) {
  Value inside = math.boolean(true);
  for (auto [axis, extent] : llvm::enumerate(extents))
    if (axis != but)
      inside =
          math.both(inside, math.isInside(extent, box[axis], leastSize(axis)));
  return inside;
}

/// The family of a size by comparisons with the ends of intervals.
static Value buildComparisons(HostMath &math, ArrayRef<Interval> intervals,
                              unsigned general, Value size, int64_t least) {
  // The sizes up to each end, gaps between the intervals included.
  SmallVector<std::pair<int64_t, unsigned>> ends;
  unsigned last = general;
  int64_t next = least;
  for (const Interval &interval : intervals) {
    if (interval.lo > next)
      ends.push_back({interval.lo - 1, general});
    if (!interval.hi) {
      last = interval.family;
      break;
    }
    ends.push_back({*interval.hi, interval.family});
    next = *interval.hi + 1;
  }
  Value family = math.constant(last);
  for (auto [end, familyUpTo] : llvm::reverse(ends))
    family =
        math.select(math.atMost(size, end), math.constant(familyUpTo), family);
  return family;
}

/// The family of a size by a switch over the sizes where there are many
/// intervals of few sizes, else by comparisons.
static Value buildFamilyOfSize(ImplicitLocOpBuilder &b,
                               ArrayRef<Interval> intervals, unsigned general,
                               Value size, int64_t least) {
  HostMath math{b};
  // Only the last interval can be open; comparing it is left to the default.
  ArrayRef<Interval> closed = intervals;
  if (!closed.empty() && !closed.back().hi)
    closed = closed.drop_back();
  if (intervals.size() <= kMaxComparedIntervals ||
      *closed.back().hi > kMaxSwitchedSizes)
    return buildComparisons(math, intervals, general, size, least);

  SmallVector<int64_t> cases, families;
  for (const Interval &interval : closed)
    for (int64_t value = std::max(interval.lo, least); value <= *interval.hi;
         ++value) {
      cases.push_back(value);
      families.push_back(interval.family);
    }
  auto switchOp = scf::IndexSwitchOp::create(b, TypeRange{b.getIndexType()},
                                             size, cases, cases.size());
  OpBuilder::InsertionGuard guard(b);
  for (auto [region, family] :
       llvm::zip_equal(switchOp.getCaseRegions(), families)) {
    b.createBlock(&region);
    scf::YieldOp::create(b, math.constant(family));
  }
  b.createBlock(&switchOp.getDefaultRegion());
  scf::YieldOp::create(b, buildComparisons(math,
                                           intervals.drop_front(closed.size()),
                                           general, size, least));
  return switchOp.getResult(0);
}

/// The axis that leaves fewest cells, and those.
static std::optional<std::pair<unsigned, std::vector<PlanCell>>>
fewestCells(ArrayRef<DispatchEntry> entries, unsigned numAxes) {
  std::optional<std::pair<unsigned, std::vector<PlanCell>>> best;
  for (unsigned axis = 0; axis < numAxes; ++axis)
    if (auto cells = planCells(entries, axis);
        cells && (!best || cells->size() < best->second.size()))
      best.emplace(axis, std::move(*cells));
  return best;
}

/// The family of the first entry that holds the shape, else `otherwise`, on the
/// host: a switch over the cells, in each the family of the deciding size.
/// Boxes in no such order are compared one by one.
static Value buildFamilyOfShape(ImplicitLocOpBuilder &b,
                                ArrayRef<DispatchEntry> entries,
                                unsigned otherwise, ArrayRef<Value> extents) {
  HostMath math{b};
  Value none = math.constant(otherwise);
  auto found = fewestCells(entries, extents.size());
  if (!found) {
    Value family = none;
    for (const DispatchEntry &entry : llvm::reverse(entries))
      family = math.select(buildInside(math, entry.box, extents),
                           math.constant(entry.family), family);
    return family;
  }

  auto &[axis, cells] = *found;
  Value size = extents[axis];
  if (cells.empty())
    return none;
  if (cells.size() == 1) {
    Value family = buildFamilyOfSize(b, cells.front().intervals, otherwise,
                                     size, leastSize(axis));
    return math.select(buildInside(math, cells.front().box, extents, axis),
                       family, none);
  }
  SmallVector<int64_t> cases =
      llvm::to_vector(llvm::seq<int64_t>(0, cells.size()));
  Value cell = math.constant(cells.size());
  for (auto [index, candidate] : llvm::enumerate(cells))
    cell = math.select(buildInside(math, candidate.box, extents, axis),
                       math.constant(index), cell);
  auto switchOp = scf::IndexSwitchOp::create(b, TypeRange{b.getIndexType()},
                                             cell, cases, cases.size());
  OpBuilder::InsertionGuard guard(b);
  for (auto [region, candidate] :
       llvm::zip_equal(switchOp.getCaseRegions(), cells)) {
    b.createBlock(&region);
    scf::YieldOp::create(b, buildComparisons(math, candidate.intervals,
                                             otherwise, size, leastSize(axis)));
  }
  b.createBlock(&switchOp.getDefaultRegion());
  scf::YieldOp::create(b, none);
  return switchOp.getResult(0);
}

/// Blocks of the first part and of both along the combined axis:
/// `balancedCover` on the host.
static std::pair<Value, Value> buildBalancedCover(HostMath &math, int64_t low,
                                                  int64_t high, int64_t sms,
                                                  Value beside, Value extent) {
  auto least = [&](Value a, Value b) {
    return math.select(math.compare(arith::CmpIPredicate::ule, a, b), a, b);
  };
  auto most = [&](Value a, Value b) {
    return math.select(math.compare(arith::CmpIPredicate::uge, a, b), a, b);
  };
  // Another extent may be 0.
  beside = most(beside, math.constant(1));
  Value fewest = math.ceilDiv(extent, high);
  Value rounds = math.ceilDiv(math.mul(fewest, beside), sms);
  Value filling = math.div(math.mul(rounds, math.constant(sms)), beside);
  Value blocks = least(most(filling, fewest), math.ceilDiv(extent, low));
  Value inLow = least(math.mul(blocks, math.constant(low)), extent);
  Value second = math.ceilDiv(math.sub(extent, inLow), high - low);
  return {math.sub(blocks, second), blocks};
}

/// Blocks of the first part and of both along the combined axis: `coverExtent`
/// on the host.
static std::pair<Value, Value> buildCover(HostMath &math,
                                          ukernel::FamilyAttr family,
                                          Value extent, Value beside) {
  int64_t axis = family.getAxis();
  ArrayRef<ukernel::UKernelAttr> parts = family.getParts();
  if (parts.size() == 1) {
    Value blocks = math.ceilDiv(extent, parts[0].getSmem()[axis]);
    return {blocks, blocks};
  }
  int64_t low = parts[0].getSmem()[axis], high = parts[1].getSmem()[axis];
  if (int64_t sms = family.getBalanced())
    return buildBalancedCover(math, low, high, sms, beside, extent);
  CoverConstants c = coverConstants(low, high);
  Value units = math.ceilDiv(extent, c.unit);
  Value first = math.rem(
      math.mul(math.rem(units, c.high), math.constant(c.inverse)), c.high);
  Value inFirst = math.mul(first, math.constant(c.low));
  Value exact = math.compare(arith::CmpIPredicate::uge, units, inFirst);
  Value second = math.div(math.sub(units, inFirst), c.high);
  first = math.select(exact, first, math.constant(0));
  second = math.select(exact, second, math.ceilDiv(units, c.high));
  return {first, math.add(first, second)};
}

void WorkloadDispatcher::buildLaunch(ImplicitLocOpBuilder &b,
                                     ukernel::OperatorOpInterface op,
                                     ukernel::PlanAttr plan, int64_t family,
                                     ArrayRef<Value> extents) {
  HostMath math{b};
  ukernel::FamilyAttr attr = plan.getFamilies()[family];
  Value beside = math.constant(1);
  for (unsigned axis = 0; axis < extents.size(); ++axis)
    if (axis != attr.getAxis() && axis != Workload::kK)
      beside =
          math.mul(beside, math.ceilDiv(extents[axis],
                                        attr.getParts()[0].getSmem()[axis]));
  auto [first, along] = buildCover(math, attr, extents[attr.getAxis()], beside);
  Value blocks = math.mul(along, beside);
  auto launch = ukernel::LaunchOp::create(
      b, FlatSymbolRefAttr::get(kernelFor(op, attr, family).getSymNameAttr()),
      blocks, op->getOperands(), extents, /*strides=*/ValueRange(), first);
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
static bool computeTheSame(ukernel::OperatorOpInterface lhs, ukernel::OperatorOpInterface rhs) {
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

const std::string &WorkloadDispatcher::prefixOf(ukernel::OperatorOpInterface op) {
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
  kernel = ukernel::KernelOp::create(b, name, family.getPath(),
                                     b.getStringAttr(prefix));
  symbols.insert(kernel);
  SmallVector<Type> types(op->getOperandTypes());
  types.append(op.getNumAxes() + 1, b.getIndexType());
  SmallVector<Location> locations(types.size(), op.getLoc());
  Block *body = b.createBlock(&kernel.getBody(), {}, types, locations);
  SmallVector<int64_t> heights;
  for (ukernel::UKernelAttr part : family.getParts())
    heights.push_back(part.getSmem()[family.getAxis()]);
  Value count = heights.size() == 2 ? body->getArguments().back() : Value();
  IntegerAttr balanced;
  if (int64_t sms = family.getBalanced())
    balanced = b.getI64IntegerAttr(sms);
  auto combine =
      ukernel::CombineOp::create(b, family.getAxis(), count, heights, balanced);
  b.createBlock(&combine.getBody());
  for (ukernel::UKernelAttr part : family.getParts())
    buildTile(b, kernel, op, part);
  return kernel;
}

void WorkloadDispatcher::buildTile(ImplicitLocOpBuilder &b,
                                   ukernel::KernelOp kernel,
                                   ukernel::OperatorOpInterface op,
                                   ukernel::UKernelAttr ukernel) {
  OpBuilder::InsertionGuard guard(b);
  auto tile = ukernel::TileOp::create(b, ukernel);
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
  op.cloneIntoTile(b, operands, ukernel.getSmem());
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
    return op->emitOpError("expected a ukernel.plan named ") << op.getPlanAttr();
  ukernel::PlanAttr plan = planOp.getPlan();
  llvm::Expected<Plan> decoded = toPlan(plan);
  if (!decoded)
    return op->emitOpError(llvm::toString(decoded.takeError()));
  makeInnermostContiguous(op);
  // Only the search asks for symbols; kernels do not differ by them.
  op->removeAttr(ukernel::UKernelDialect::kExtentsAttrName);
  current = nameOf(op);
  recordWorkload(planOp, prefixOf(op));

  ImplicitLocOpBuilder b(op.getLoc(), op);
  HostMath math{b};
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
      buildFamilyOfShape(b, decoded->entries, decoded->generalFamily, extents);
  int64_t alignment = 4 * decoded->alignedWidth();
  if (alignment > 4) {
    Value aligned = buildAligned(b, op, extents, alignment);
    Value unaligned = buildFamilyOfShape(b, decoded->unalignedEntries,
                                         decoded->fallbackFamily, extents);
    family = math.select(aligned, family, unaligned);
    for (ukernel::ChoiceAttr choice : plan.getUnaligned())
      reachable.insert(choice.getFamily());
    reachable.insert(plan.getFallback());
  }

  reachable.remove(plan.getFallback());
  SmallVector<int64_t> cases(reachable.begin(), reachable.end());
  llvm::sort(cases);
  auto switchOp =
      scf::IndexSwitchOp::create(b, TypeRange(), family, cases, cases.size());
  OpBuilder::InsertionGuard guard(b);
  for (auto [region, index] :
       llvm::zip_equal(switchOp.getCaseRegions(), cases)) {
    b.createBlock(&region);
    buildLaunch(b, op, plan, index, extents);
    scf::YieldOp::create(b);
  }
  b.createBlock(&switchOp.getDefaultRegion());
  buildLaunch(b, op, plan, plan.getFallback(), extents);
  scf::YieldOp::create(b);
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
