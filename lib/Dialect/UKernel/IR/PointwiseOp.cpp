//===- PointwiseOp.cpp - Chains of elementwise operators ------------------===//
#include "FTuner/Dialect/UKernel/IR/Computations.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace ftuner;
using namespace ftuner::ukernel;

static unsigned numDimsOf(PointwiseOp op) {
  return cast<AffineMapAttr>(op.getIndexingMaps()[0]).getValue().getNumDims();
}

/// Returns the number of loops of which p is fused; 0 if it is one loop.
static unsigned numFusedLoopsOf(PointwiseOp op) {
  unsigned taps = op.getNumTapLoops(), others = taps > 0 ? taps + 2 : 1;
  return std::max(numDimsOf(op), others) - others;
}

unsigned PointwiseOp::getNumLoops() {
  return std::max(numFusedLoopsOf(*this), 1u);
}

SmallVector<utils::IteratorType> PointwiseOp::getLoopIteratorTypes() {
  SmallVector<utils::IteratorType> kinds = {utils::IteratorType::parallel};
  if (getNumTapLoops() > 0)
    kinds.push_back(utils::IteratorType::reduction);
  return kinds;
}

StringRef PointwiseOp::getAxisName(unsigned axis) {
  return axis == 0 ? "p" : "t";
}

SmallVector<FusedLoop> PointwiseOp::getFusedLoops() {
  SmallVector<FusedLoop> loops;
  for (unsigned loop = 0; loop < numFusedLoopsOf(*this); ++loop)
    loops.push_back({0, "d" + std::to_string(loop)});
  if (getNumTapLoops() > 0)
    for (auto [loop, extent] : llvm::enumerate(*getTaps()))
      loops.push_back({1, "t" + std::to_string(loop), extent});
  return loops;
}

OperandRole PointwiseOp::getOperandRole(unsigned number) {
  return number < getInputs().size() ? OperandRole::Input : OperandRole::Output;
}

bool PointwiseOp::hasTaps(unsigned number) {
  AffineMap map = getMatchingIndexingMap(&(*this)->getOpOperand(number));
  unsigned end = map.getNumDims();
  return llvm::any_of(llvm::seq(end - getNumTapLoops(), end),
                      [&](unsigned dim) { return map.isFunctionOfDim(dim); });
}

SmallVector<unsigned> PointwiseOp::getPlainInputs() {
  SmallVector<unsigned> numbers;
  for (unsigned number : llvm::seq<unsigned>(getInputs().size()))
    if (!hasTaps(number))
      numbers.push_back(number);
  return numbers;
}

TypedAttr PointwiseOp::getPadding(unsigned number) {
  ArrayAttr padded = getPaddedAttr();
  return padded && number < padded.size() ? dyn_cast<TypedAttr>(padded[number])
                                          : TypedAttr();
}

/// A value that has no name counts as zero: kernels take the value from the
/// operator itself.
std::optional<ftuner::Identity> PointwiseOp::getOutside(unsigned number) {
  TypedAttr value = getPadding(number);
  if (!value)
    return std::nullopt;
  auto real = dyn_cast<FloatAttr>(value);
  if (real && real.getValue().isInfinity())
    return real.getValue().isNegative() ? Identity::Lowest : Identity::Highest;
  return Identity::Zero;
}

/// pointwise_c1 and pointwise_c2.
static LogicalResult verifyLoops(PointwiseOp op) {
  unsigned numFused = numFusedLoopsOf(op),
           numAxes = op.getNumTapLoops() ? 2 : 1;
  if (numFused == 1 || numFused > PointwiseOp::kMaxLoops)
    return op.emitOpError("expected maps of one axis, or of it and 2 to ")
           << PointwiseOp::kMaxLoops << " loops";
  if (op.getOutputs().empty())
    return op.emitOpError("expected an output");
  MLIRContext *context = op.getContext();
  for (OpOperand &output : op.getOutputsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&output);
    bool isFirst = &output == op.getOutputsMutable().begin();
    SmallVector<AffineExpr> loops;
    for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
      loops.push_back(
          getAffineDimExpr(numFused > 0 ? numAxes + loop : 0, context));
    bool hasAll = map.getNumResults() == loops.size() &&
                  llvm::all_of(loops, [&](AffineExpr loop) {
                    return llvm::is_contained(map.getResults(), loop);
                  });
    if (!hasAll || (isFirst && map.getResults() != ArrayRef(loops)))
      return op.emitOpError("expected each output to have one dimension for "
                            "each loop, and the first output to have them in "
                            "the order of the loops, but got ")
             << AffineMapAttr::get(map);
  }
  return success();
}

/// pointwise_c5.
static LogicalResult verifyPadding(PointwiseOp op) {
  ArrayAttr padded = op.getPaddedAttr();
  if (!padded)
    return success();
  if (padded.size() != op.getInputs().size())
    return op.emitOpError("expected padding or 'unit' for each of ")
           << op.getInputs().size() << " inputs, but got " << padded.size();
  for (auto [value, input] : llvm::zip_equal(padded, op.getInputs())) {
    if (isa<UnitAttr>(value))
      continue;
    auto typed = dyn_cast<TypedAttr>(value);
    Type element = getElementTypeOrSelf(input.getType());
    if (!typed || typed.getType() != element)
      return op.emitOpError("expected padding of ")
             << element << ", but got " << value;
  }
  return success();
}

/// Verifies pointwise_c4, except for extents, and returns the types of the
/// accumulators.
static FailureOr<SmallVector<Type>>
verifyReduction(PointwiseOp op, ArrayRef<Type> plain, ArrayRef<Type> all) {
  bool hasTaps = op.getNumTapLoops() > 0;
  if (op.getStart().empty() == hasTaps || op.getReduce().empty() == hasTaps)
    return op.emitOpError(hasTaps ? "expected 'start' and 'reduce' for taps"
                                  : "expected taps for 'start' and 'reduce'");
  if (!hasTaps)
    return SmallVector<Type>();
  SmallVector<Type> accumulators(
      op.getStart().front().back().getOperandTypes());
  if (accumulators.empty())
    return op.emitOpError("expected start to yield an accumulator");
  SmallVector<Type> arguments(all);
  llvm::append_range(arguments, accumulators);
  if (failed(verifyScalarRegion(op, op.getStart(), "start", plain,
                                accumulators)) ||
      failed(verifyScalarRegion(op, op.getReduce(), "reduce", arguments,
                                accumulators)))
    return failure();
  return accumulators;
}

LogicalResult PointwiseOp::verify() {
  // pointwise_c4.
  int64_t all = 1;
  for (int64_t extent : getTaps().value_or(ArrayRef<int64_t>())) {
    if (extent < 1 || all * extent > kMaxTaps)
      return emitOpError("expected positive extents of up to ")
             << kMaxTaps << " taps in all";
    all *= extent;
  }
  if (getTaps() && getTaps()->empty())
    return emitOpError("expected taps along one loop or more");
  return verifyPadding(*this);
}

LogicalResult PointwiseOp::verifyRegions() {
  if (failed(verifyLoops(*this)))
    return failure();
  auto elementType = [&](Value value) {
    return getElementTypeOrSelf(value.getType());
  };
  SmallVector<Type> all = llvm::map_to_vector(getInputs(), elementType), plain;
  for (unsigned number : getPlainInputs())
    plain.push_back(all[number]);
  FailureOr<SmallVector<Type>> accumulators =
      verifyReduction(*this, plain, all);
  if (failed(accumulators))
    return failure();
  llvm::append_range(plain, *accumulators);
  // pointwise_c3.
  if (failed(
          verifyScalarRegion(*this, getMap(), "map", plain,
                             llvm::map_to_vector(getOutputs(), elementType))))
    return failure();
  return verifyComputations(*this);
}

LogicalResult PointwiseOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyPlanUse(*this, symbols);
}

void PointwiseOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  getOperatorEffects(*this, effects);
}

LogicalResult
PointwiseOp::reifyResultShapes(OpBuilder &builder,
                               ReifiedRankedShapedTypeDims &shapes) {
  return reifyOutputShapes(*this, builder, shapes);
}

/// Number of points up to which an operator without a declared maximum is
/// planned. DRAM bounds what is larger, whatever the kernel is.
static constexpr int64_t kPlannedPoints = 1 << 28;

void PointwiseOp::describe(Workload &workload) {
  // The end at which searches stop for open ranges suits rows and columns, not
  // their product.
  SizeRange &range = workload.axes.front().range;
  if (!range.max) {
    int64_t more = std::max<int64_t>(kPlannedPoints - range.min, 0);
    range.max = range.min + more / range.step * range.step;
  }
  SmallVector<unsigned> plain = getPlainInputs();
  Computation map;
  map.name = "map";
  map.axes = {0};
  map.operations = collectOperations(getMap().front());
  if (getNumTapLoops() > 0) {
    Block &body = getReduce().front();
    Computation reduction;
    reduction.name = "reduce";
    reduction.axes = {0, 1};
    reduction.reduce = {1};
    reduction.operations = collectOperations(body);
    for (unsigned number : llvm::seq<unsigned>(getInputs().size()))
      if (!body.getArgument(number).use_empty())
        reduction.reads.push_back(Read::operand(number));
    reduction.state.emplace();
    auto types = body.getTerminator()->getOperandTypes();
    if (types.size() == 1)
      reduction.state->merge = mergeOf(body).first;
    else
      reduction.state->merge = Merge::Other;
    reduction.state->accumulators.clear();
    for (auto [number, type] : llvm::enumerate(types))
      reduction.state->accumulators.push_back(
          {"accumulator" + std::to_string(number), toElementType(type)});
    workload.computations.push_back(std::move(reduction));
    map.reads.push_back(Read::computation(0));
    for (Operation &inner : getStart().front())
      collectOperations(inner, map.operations);
  }
  for (unsigned number : plain)
    map.reads.push_back(Read::operand(number));
  for (unsigned number : llvm::seq<unsigned>(getOutputs().size()))
    map.writes.push_back(getInputs().size() + number);
  workload.computations.push_back(std::move(map));
}
