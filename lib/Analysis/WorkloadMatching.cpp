//===- WorkloadMatching.cpp - Contractions that become workloads ----------===//
#include "FTuner/Analysis/WorkloadMatching.h"

#include "FTuner/Dialect/UKernel/Utils/Roundings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/CastInterfaces.h"
#include "mlir/Support/DebugStringHelper.h"
#include "mlir/Transforms/RegionUtils.h"

#include <cmath>

using namespace mlir;
using namespace ftuner;
using ukernel::WorkloadOp;

//===----------------------------------------------------------------------===//
// Epilogues
//===----------------------------------------------------------------------===//

/// Returns true if all types are floats or integers, not indices.
static bool areNumbers(TypeRange types) {
  return llvm::all_of(types, [](Type type) { return type.isIntOrFloat(); });
}

/// Returns true if kernels compute the body for each element. Remainders of
/// floats are loops, which would be unrolled for every element.
static bool isEpilogueBody(Block &body) {
  for (Operation &op : body.without_terminator()) {
    if (op.hasTrait<OpTrait::ConstantLike>() && areNumbers(op.getResultTypes()))
      continue;
    if (!isa<arith::ArithDialect, math::MathDialect>(op.getDialect()) ||
        !OpTrait::hasElementwiseMappableTraits(&op) || isa<arith::RemFOp>(op) ||
        !areNumbers(op.getOperandTypes()) || !areNumbers(op.getResultTypes()))
      return false;
  }
  return true;
}

/// Returns true if all that the body reads can be extras: tensors and scalars.
static bool hasEpilogueOperands(linalg::GenericOp op) {
  for (OpOperand &operand : op->getOpOperands()) {
    Type type = operand.get().getType();
    if (op.getMatchingBlockArgument(&operand).use_empty())
      continue;
    if (!isa<RankedTensorType>(type) && !type.isIntOrFloat())
      return false;
    if (!op.getMatchingIndexingMap(&operand).isProjectedPermutation())
      return false;
  }
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op.getRegion(), captured);
  return areNumbers(ValueRange(captured.getArrayRef()).getTypes());
}

/// Returns the only user of a value if it is an elementwise operator that can
/// be fused; else null.
static linalg::GenericOp matchEpilogue(Value accumulator) {
  if (accumulator.use_empty())
    return {};
  auto op = dyn_cast<linalg::GenericOp>(*accumulator.user_begin());
  if (!op || op->getBlock() != accumulator.getParentBlock() ||
      !llvm::all_of(accumulator.getUsers(),
                    [&](Operation *user) { return user == op; }))
    return {};
  if (!op.hasPureTensorSemantics() ||
      op.getNumParallelLoops() != op.getNumLoops() ||
      op->getNumResults() != 1 || op.hasIndexSemantics())
    return {};
  AffineMap resultMap = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (!resultMap.isPermutation())
    return {};
  // All uses read the accumulator at the same point.
  AffineMap map;
  for (OpOperand &use : accumulator.getUses()) {
    AffineMap useMap = op.getMatchingIndexingMap(&use);
    if (!useMap.isPermutation() || (map && map != useMap))
      return {};
    map = useMap;
  }
  if (!hasEpilogueOperands(op) || !isEpilogueBody(*op.getBody()))
    return {};
  return op;
}

//===----------------------------------------------------------------------===//
// Prologues
//===----------------------------------------------------------------------===//
//
// A prologue is computed again for each block tile along the axis that its
// factor does not have, and its factor passes registers, which copies to shared
// memory could bypass. It saves a kernel that reads and writes the factor once.
// So it pays if it is short and tiles are few.

/// Rows or columns of a block tile, and the assumed size of an axis without a
/// bound.
static constexpr int64_t kTypicalTile = 128, kOpenSize = 512;
/// Maximum number of operations for each element, over all tiles, of a prologue
/// that pays.
static constexpr int64_t kMaxRecomputed = 16;

AffineMap Prologue::mapOf(OpOperand &operand, AffineMap map) const {
  linalg::GenericOp generic = op;
  AffineMap resultMap =
      generic.getMatchingIndexingMap(generic.getDpsInitOperand(0));
  return generic.getMatchingIndexingMap(&operand)
      .compose(inversePermutation(resultMap))
      .compose(map);
}

/// Returns true if every user of a prologue's result is a contraction.
static bool isForContractions(linalg::GenericOp op) {
  if (op->hasOneUse())
    return true;
  // Casts are cheap, so each contraction does its own.
  bool isCast = llvm::all_of(op.getBody()->without_terminator(),
                             llvm::IsaPred<CastOpInterface>);
  return isCast && llvm::all_of(op->getUsers(), [](Operation *user) {
           auto contraction = dyn_cast<linalg::LinalgOp>(user);
           return contraction && matchContraction(contraction);
         });
}

/// Matches the elementwise operator before an input of a contraction.
static Prologue matchPrologue(Value input, Block *block) {
  auto op = input.getDefiningOp<linalg::GenericOp>();
  if (!op || op->getBlock() != block || !op.hasPureTensorSemantics() ||
      op.getNumParallelLoops() != op.getNumLoops() ||
      op->getNumResults() != 1 || op.hasIndexSemantics() ||
      !isForContractions(op) || !hasEpilogueOperands(op) ||
      !isEpilogueBody(*op.getBody()))
    return {};
  OpOperand *init = op.getDpsInitOperand(0);
  if (!op.getMatchingIndexingMap(init).isPermutation() ||
      !op.getMatchingBlockArgument(init).use_empty() ||
      llvm::any_of(op.getBody()->without_terminator(),
                   [](Operation &inner) { return isOpTriviallyDead(&inner); }))
    return {};
  // A prologue of exact casts only is part of the contraction.
  if (llvm::all_of(op.getBody()->without_terminator(),
                   [](Operation &inner) { return isExactCast(&inner); }))
    return {};
  Prologue result{op};
  for (OpOperand *operand : op.getDpsInputOperands()) {
    // Paths do not read masks: booleans are bytes in memory, but not in
    // vectors.
    if (isa<RankedTensorType>(operand->get().getType()) &&
        getElementTypeOrSelf(operand->get()).isInteger(1))
      return {};
    BlockArgument argument = op.getMatchingBlockArgument(operand);
    bool isWhole = isa<RankedTensorType>(operand->get().getType()) &&
                   op.getMatchingIndexingMap(operand).isPermutation();
    if (!isWhole || argument.use_empty())
      continue;
    // The narrowest operand saves the most memory traffic.
    if (!result.factor ||
        getElementTypeOrSelf(operand->get()).getIntOrFloatBitWidth() <
            getElementTypeOrSelf(result.factor->get()).getIntOrFloatBitWidth())
      result.factor = operand;
  }
  return result.factor ? result : Prologue();
}

/// Returns how often each element of an input is read: the number of tiles
/// along the loops that only the other factor has.
static int64_t countTiles(linalg::LinalgOp op, ArrayRef<unsigned> loops,
                          ExtentAnalysis &extents) {
  OpOperand *result = op.getDpsInitOperand(0);
  AffineMap map = op.getMatchingIndexingMap(result);
  double size = 1;
  for (auto [dim, position] : llvm::enumerate(map.getResults())) {
    unsigned loop = cast<AffineDimExpr>(position).getPosition();
    if (!llvm::is_contained(loops, loop))
      continue;
    ukernel::RangeAttr range =
        extents.rangeOf(extents.dimOf(op->getResult(0), dim));
    size *= static_cast<double>(range.isOpen() ? kOpenSize : range.getMax());
  }
  return static_cast<int64_t>(
      std::min(std::ceil(size / kTypicalTile), double(kMaxRecomputed + 1)));
}

static bool paysToFuse(linalg::GenericOp op, int64_t tiles) {
  double count = 0;
  for (const Operations &operations : collectOperations(*op.getBody())) {
    if (operations.unit() == OperationUnit::Special)
      return false;
    count += operations.count;
  }
  return double(tiles) * count <= kMaxRecomputed;
}

/// Matches the prologues of a contraction's inputs that pay.
static std::array<Prologue, 2> matchPrologues(linalg::LinalgOp op,
                                              const Contraction &loops,
                                              ExtentAnalysis &extents) {
  std::array<Prologue, 2> result;
  for (unsigned input : {0, 1}) {
    Prologue prologue =
        matchPrologue(op.getDpsInputOperand(input)->get(), op->getBlock());
    if (prologue.op &&
        paysToFuse(prologue.op,
                   countTiles(op, input == 0 ? loops.n : loops.m, extents)))
      result[input] = prologue;
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

static unsigned getLoop(AffineMap map, unsigned result) {
  return cast<AffineDimExpr>(map.getResult(result)).getPosition();
}

namespace {
/// Finds the axis of each loop of a contraction.
class AxisAssignment {
public:
  AxisAssignment(linalg::LinalgOp op, const Contraction &loops)
      : op(op), maps(op.getIndexingMapsArray()), m(loops.m), n(loops.n),
        k(loops.k), extents(op.getStaticLoopRanges()) {}

  /// Fills in the axes and the roles of the inputs, or returns why they are
  /// none. `resultLoops` has the loop of each dimension of the workload's
  /// output.
  std::optional<StringRef> assign(ArrayRef<unsigned> resultLoops,
                                  WorkloadSource &source);

private:
  unsigned rowLoop(ArrayRef<unsigned> resultLoops) const;

  linalg::LinalgOp op;
  SmallVector<AffineMap> maps;
  ArrayRef<unsigned> m, n, k;
  SmallVector<int64_t> extents;
};
} // namespace

/// Returns the loop of rows, among loops that only lhs has: prefers dynamic to
/// static, long to short, and inner to outer loops.
unsigned AxisAssignment::rowLoop(ArrayRef<unsigned> resultLoops) const {
  auto rank = [&](unsigned loop) {
    bool isDynamic = ShapedType::isDynamic(extents[loop]);
    return std::make_pair(isDynamic, isDynamic ? 0 : extents[loop]);
  };
  std::optional<unsigned> best;
  for (unsigned loop : resultLoops)
    if (llvm::is_contained(m, loop) && (!best || rank(loop) >= rank(*best)))
      best = loop;
  return *best;
}

std::optional<StringRef> AxisAssignment::assign(ArrayRef<unsigned> resultLoops,
                                                WorkloadSource &source) {
  if (m.empty() || n.empty() || k.empty())
    return "without m, n or k dimension";
  if (k.size() > 1)
    return "whose reduce dimensions cannot be joined to one";
  // Columns are the innermost dimension of the result that is not a batch.
  auto isOfOneFactor = [&](unsigned loop) {
    return llvm::is_contained(m, loop) || llvm::is_contained(n, loop);
  };
  unsigned column = *llvm::find_if(llvm::reverse(resultLoops), isOfOneFactor);
  for (unsigned input : {0, 1})
    maps[input] = source.getFactor(input).map;
  source.isSwapped = llvm::is_contained(m, column);
  if (source.isSwapped) {
    std::swap(m, n);
    std::swap(maps[0], maps[1]);
  }
  unsigned lhsInner = getLoop(maps[0], maps[0].getNumResults() - 1);
  unsigned reduce = k.front();
  unsigned row =
      llvm::is_contained(m, lhsInner) ? lhsInner : rowLoop(resultLoops);
  if (op.getNumLoops() >
      WorkloadOp::kNumProductAxes + WorkloadOp::kMaxBatchAxes)
    return "with more than three batch dimensions";
  source.numAxes = op.getNumLoops();
  source.fused.clear();
  source.contractionDims.assign(op.getNumLoops(), 0);
  source.contractionDims[row] = WorkloadOp::kM;
  source.contractionDims[column] = WorkloadOp::kN;
  source.contractionDims[reduce] = WorkloadOp::kK;
  unsigned axis = WorkloadOp::kNumProductAxes;
  for (unsigned loop : resultLoops)
    if (loop != row && loop != column)
      source.contractionDims[loop] = axis++;
  return std::nullopt;
}

namespace {
/// A sum of products that may become a workload, with the roles of its loops.
struct Product {
  linalg::LinalgOp op;
  std::optional<Contraction> contraction;
  std::optional<Convolution> convolution;

  static std::optional<Product> match(linalg::LinalgOp op);
  /// Fills in the axes and the roles of the inputs, or returns why they are
  /// none. `resultLoops`: see `AxisAssignment::assign`.
  std::optional<StringRef> assign(ArrayRef<unsigned> resultLoops,
                                  WorkloadSource &source) const;

private:
  std::optional<StringRef> assignWindows(ArrayRef<unsigned> resultLoops,
                                         WorkloadSource &source) const;
};
} // namespace

std::optional<Product> Product::match(linalg::LinalgOp op) {
  Product product{op, matchContraction(op), std::nullopt};
  if (!product.contraction)
    product.convolution = matchConvolution(op);
  if (!product.contraction && !product.convolution)
    return std::nullopt;
  return product;
}

std::optional<StringRef> Product::assign(ArrayRef<unsigned> resultLoops,
                                         WorkloadSource &source) const {
  return contraction
             ? AxisAssignment(op, *contraction).assign(resultLoops, source)
             : assignWindows(resultLoops, source);
}

/// Returns the last run of loops, neighbours in the result, that are among
/// `loops`.
static ArrayRef<unsigned> lastRun(ArrayRef<unsigned> resultLoops,
                                  ArrayRef<unsigned> loops) {
  auto isAmong = [&](unsigned loop) { return llvm::is_contained(loops, loop); };
  while (!resultLoops.empty() && !isAmong(resultLoops.back()))
    resultLoops = resultLoops.drop_back();
  size_t length = 0;
  while (length < resultLoops.size() &&
         isAmong(resultLoops[resultLoops.size() - 1 - length]))
    ++length;
  return resultLoops.take_back(length);
}

/// The loops of rows, of columns and of sums are each fused to one axis if
/// there are several, and the rest are batch axes. Rows and columns are the
/// last run of pixels and of filters in the result, columns what is innermost
/// there. Sums go through the filter as it lies in memory, but through the
/// image's innermost dimension last, so that neighbours there are neighbours.
std::optional<StringRef> Product::assignWindows(ArrayRef<unsigned> resultLoops,
                                                WorkloadSource &source) const {
  linalg::LinalgOp op = this->op;
  ArrayRef<unsigned> pixels = lastRun(resultLoops, convolution->pixels),
                     filters = lastRun(resultLoops, convolution->filters);
  bool endsInPixels = &pixels.back() > &filters.back();
  // The image is lhs unless pixels are columns.
  source.isSwapped = (convolution->image == 0) == endsInPixels;
  ArrayRef<unsigned> rows = endsInPixels ? filters : pixels,
                     columns = endsInPixels ? pixels : filters;
  SmallVector<unsigned> sums;
  AffineMap filter = source.getFactor(1 - convolution->image).map,
            image = source.getFactor(convolution->image).map;
  for (AffineExpr position : filter.getResults()) {
    unsigned loop = cast<AffineDimExpr>(position).getPosition();
    if (llvm::is_contained(convolution->sums, loop))
      sums.push_back(loop);
  }
  if (auto inner = dyn_cast<AffineDimExpr>(image.getResults().back())) {
    auto *found = llvm::find(sums, inner.getPosition());
    if (found != sums.end())
      std::rotate(found, found + 1, sums.end());
  }
  SmallVector<unsigned> batch;
  for (unsigned loop : resultLoops)
    if (!llvm::is_contained(rows, loop) && !llvm::is_contained(columns, loop))
      batch.push_back(loop);
  if (batch.size() > WorkloadOp::kMaxBatchAxes)
    return "with more than three batch dimensions";
  source.numAxes = WorkloadOp::kNumProductAxes + batch.size();
  source.fused.clear();
  source.contractionDims.assign(op.getNumLoops(), 0);
  auto setAxis = [&](unsigned axis, ArrayRef<unsigned> loops) {
    for (unsigned loop : loops) {
      if (loops.size() > 1)
        source.fused.push_back(axis);
      source.contractionDims[loop] =
          loops.size() > 1 ? source.numAxes + source.fused.size() - 1 : axis;
    }
  };
  setAxis(WorkloadOp::kM, rows);
  setAxis(WorkloadOp::kN, columns);
  setAxis(WorkloadOp::kK, sums);
  for (auto [number, loop] : llvm::enumerate(batch))
    source.contractionDims[loop] = WorkloadOp::kNumProductAxes + number;
  return std::nullopt;
}

/// Returns the padding of a convolution's image with zeros if windows can read
/// the image as if it were padded; null otherwise.
static tensor::PadOp matchPadding(const Product &product) {
  if (!product.convolution)
    return {};
  linalg::LinalgOp op = product.op;
  OpOperand *image = op.getDpsInputOperand(product.convolution->image);
  tensor::PadOp pad = paddingOf(image->get());
  if (!pad || pad->getBlock() != op->getBlock())
    return {};
  Value value = pad.getConstantPaddingValue();
  bool isZero =
      matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero());
  return isZero && canReadSource(pad, op.getMatchingIndexingMap(image))
             ? pad
             : tensor::PadOp();
}

/// Returns the loop of each dimension of the contraction's result.
static SmallVector<unsigned> getResultLoops(linalg::LinalgOp op) {
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  return llvm::map_to_vector(map.getResults(), [](AffineExpr result) {
    return cast<AffineDimExpr>(result).getPosition();
  });
}

/// Matches the contraction with its epilogue.
static std::optional<WorkloadSource> matchWithEpilogue(const Product &product,
                                                       WorkloadSource source) {
  linalg::LinalgOp op = product.op;
  linalg::GenericOp epilogue = source.epilogue;
  AffineMap outMap =
      epilogue.getMatchingIndexingMap(epilogue.getDpsInitOperand(0));
  AffineMap accumulatorMap =
      epilogue.getMatchingIndexingMap(&*op->getResult(0).use_begin());
  // Maps loops of the epilogue to loops of the contraction.
  SmallVector<unsigned> toLoop(epilogue.getNumLoops());
  for (auto [dim, loop] : llvm::enumerate(getResultLoops(op)))
    toLoop[getLoop(accumulatorMap, dim)] = loop;
  SmallVector<unsigned> written;
  for (unsigned dim = 0; dim < outMap.getNumResults(); ++dim)
    written.push_back(toLoop[getLoop(outMap, dim)]);
  if (product.assign(written, source))
    return std::nullopt;
  for (unsigned loop : toLoop)
    source.epilogueDims.push_back(source.contractionDims[loop]);
  return source;
}

//===----------------------------------------------------------------------===//
// Operands of a match
//===----------------------------------------------------------------------===//

/// Returns the element type of the contraction's result.
static Type getResultType(const WorkloadSource &source) {
  linalg::LinalgOp op = source.contraction;
  return getElementTypeOrSelf(op->getResult(0).getType());
}

Type WorkloadSource::getAccumulatorType() const {
  return getAccumulatorTypeFor(getResultType(*this));
}

bool WorkloadSource::roundsAccumulator() const {
  return getAccumulatorType() != getResultType(*this);
}

AffineMap WorkloadSource::toDims(AffineMap map, ArrayRef<unsigned> dims) const {
  auto replacements = llvm::map_to_vector(dims, [&](unsigned dim) {
    return getAffineDimExpr(dim, map.getContext());
  });
  return map.replaceDimsAndSymbols(replacements, {}, getNumDims(), 0);
}

SourceOperand WorkloadSource::getFactor(unsigned input) const {
  linalg::LinalgOp op = contraction;
  OpOperand *operand = op.getDpsInputOperand(input);
  AffineMap map = op.getMatchingIndexingMap(operand);
  const Prologue &prologue = prologues[input];
  if (tensor::PadOp pad = pads[input])
    return {pad.getSource(), mapOfSource(pad, map)};
  if (!prologue.op)
    return {operand->get(), map};
  return {prologue.factor->get(), prologue.mapOf(*prologue.factor, map)};
}

/// Returns the values that a body reads from outside, except constants.
static SmallVector<Value> getCaptured(linalg::GenericOp op) {
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op.getRegion(), captured);
  return llvm::to_vector(llvm::make_filter_range(captured, [](Value value) {
    return !matchPattern(value, m_Constant());
  }));
}

SmallVector<std::pair<SourceOperand, Value>>
WorkloadSource::getInputs(unsigned input) const {
  SmallVector<std::pair<SourceOperand, Value>> result;
  const Prologue &prologue = prologues[input];
  linalg::GenericOp op = prologue.op;
  if (!op)
    return result;
  linalg::LinalgOp product = contraction;
  AffineMap map =
      product.getMatchingIndexingMap(product.getDpsInputOperand(input));
  for (OpOperand *operand : op.getDpsInputOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(operand);
    if (operand != prologue.factor && !argument.use_empty())
      result.push_back(
          {{operand->get(), prologue.mapOf(*operand, map)}, argument});
  }
  for (Value value : getCaptured(op))
    result.push_back(
        {{value, AffineMap::get(map.getNumDims(), 0, map.getContext())},
         value});
  return result;
}

SmallVector<OpOperand *> WorkloadSource::getExtraOperands() const {
  SmallVector<OpOperand *> result;
  linalg::GenericOp op = epilogue;
  if (!op)
    return result;
  for (OpOperand &operand : op->getOpOperands())
    if (operand.get() != contraction->getResult(0) &&
        !op.getMatchingBlockArgument(&operand).use_empty())
      result.push_back(&operand);
  return result;
}

SmallVector<Value> WorkloadSource::getCapturedExtras() const {
  return epilogue ? getCaptured(epilogue) : SmallVector<Value>();
}

/// Describes the workload that would be formed, for paths to say whether they
/// support it: with axes of static extents or open ranges. The workload that is
/// formed may start from another init, of the same type.
static Workload describe(const WorkloadSource &source) {
  linalg::LinalgOp contraction = source.contraction;
  linalg::GenericOp epilogue = source.epilogue;
  Workload workload;
  workload.axes.resize(source.numAxes);
  for (auto [axis, described] : llvm::enumerate(workload.axes))
    described.name = WorkloadOp::getAxisName(axis).upper();
  SmallVector<int64_t> sizes(source.getNumDims(), ShapedType::kDynamic);
  for (auto [loop, extent] :
       llvm::enumerate(contraction.getStaticLoopRanges())) {
    unsigned dim = source.contractionDims[loop];
    sizes[dim] = extent;
    if (dim < source.numAxes && ShapedType::isStatic(extent))
      workload.axes[dim].range = SizeRange::fixed(extent);
  }
  auto loops = llvm::map_to_vector(source.fused, [](int64_t axis) {
    return ukernel::FusedLoop{static_cast<unsigned>(axis), "loop"};
  });
  addLoops(loops, sizes, workload);
  auto addOperand = [&](OperandRole role, Type type, AffineMap map) {
    workload.operands.push_back(toOperand(
        role, type, map, source.numAxes, loops,
        ukernel::groupDimensions(map, source.numAxes, loops,
                                 [](size_t, size_t) { return true; })));
  };
  auto add = [&](OperandRole role, linalg::LinalgOp op, OpOperand *operand) {
    AffineMap map = source.toDims(op.getMatchingIndexingMap(operand),
                                  op == contraction ? source.contractionDims
                                                    : source.epilogueDims);
    addOperand(role, operand->get().getType(), map);
  };
  auto addRead = [&](OperandRole role, const SourceOperand &operand) {
    addOperand(role, operand.value.getType(),
               source.toDims(operand.map, source.contractionDims));
  };
  auto [lhs, rhs] = source.getInputNumbers();
  addRead(OperandRole::Lhs, source.getFactor(lhs));
  addRead(OperandRole::Rhs, source.getFactor(rhs));
  for (auto [number, input] : llvm::enumerate(source.getInputNumbers()))
    if (source.pads[input])
      workload.operands[number].outside = Identity::Zero;
  for (unsigned input : {lhs, rhs})
    for (auto &[operand, value] : source.getInputs(input))
      addRead(OperandRole::Input, operand);
  add(OperandRole::Init, contraction, contraction.getDpsInitOperand(0));
  for (OpOperand *operand : source.getExtraOperands())
    add(OperandRole::Extra, epilogue, operand);
  for (Value value : source.getCapturedExtras())
    workload.operands.push_back(
        Operand(OperandRole::Extra, {}, toElementType(value.getType())));
  linalg::LinalgOp last = epilogue ? epilogue : contraction;
  add(OperandRole::Output, last, last.getDpsInitOperand(0));
  setComputations(
      workload, {WorkloadOp::kK},
      {contraction.getBlock(), epilogue ? epilogue.getBody() : nullptr,
       source.getAccumulatorType()},
      [&](ContractionParts &parts) {
        for (auto [factor, input] : llvm::enumerate(source.getInputNumbers()))
          if (linalg::GenericOp prologue = source.prologues[input].op)
            parts.prologues[factor] = collectOperations(*prologue.getBody());
        if (source.roundsAccumulator())
          parts.epilogue.insert(parts.epilogue.begin(),
                                {OperationKind::Cast, parts.accumulatorType,
                                 toElementType(getResultType(source))});
      });
  return workload;
}

/// Returns an element type of an operand that kernels of workloads do not
/// support in memory (workload_c13); null if there is none.
static Type findUnsupportedType(const WorkloadSource &source) {
  auto isUnsupported = [](Type type) {
    return !WorkloadOp::isOperandType(type);
  };
  for (unsigned input : {0, 1}) {
    if (Type type = source.getFactor(input).value.getType();
        isUnsupported(type))
      return getElementTypeOrSelf(type);
    for (auto &[operand, value] : source.getInputs(input))
      if (isUnsupported(operand.value.getType()))
        return getElementTypeOrSelf(operand.value.getType());
  }
  for (OpOperand *operand : source.getExtraOperands())
    if (isUnsupported(operand->get().getType()))
      return getElementTypeOrSelf(operand->get().getType());
  linalg::LinalgOp last =
      source.epilogue ? linalg::LinalgOp(source.epilogue) : source.contraction;
  for (linalg::LinalgOp op : {source.contraction, last})
    if (Type type = op->getResult(0).getType(); isUnsupported(type))
      return getElementTypeOrSelf(type);
  return {};
}

/// Matches the product without an epilogue. Returns the reason if it does not
/// match.
static std::optional<StringRef> matchWithoutEpilogue(const Product &product,
                                                     WorkloadSource &source) {
  source.contraction = product.op;
  source.epilogue = {};
  return product.assign(getResultLoops(product.op), source);
}

std::optional<WorkloadSource> ftuner::matchWorkload(linalg::LinalgOp op,
                                                    const PathSupport &support,
                                                    ExtentAnalysis *extents) {
  std::optional<Product> product = Product::match(op);
  if (!product)
    return std::nullopt;
  auto isSupported = [&](const WorkloadSource &source) {
    return !findUnsupportedType(source) && support.supports(describe(source));
  };
  WorkloadSource start;
  start.contraction = op;
  auto match = [&]() -> std::optional<WorkloadSource> {
    WorkloadSource source = start;
    source.epilogue = matchEpilogue(op->getResult(0));
    if (source.epilogue)
      if (auto whole = matchWithEpilogue(*product, source);
          whole && isSupported(*whole))
        return whole;
    if (matchWithoutEpilogue(*product, source) || !isSupported(source))
      return std::nullopt;
    return source;
  };
  if (tensor::PadOp pad = matchPadding(*product)) {
    start.pads[product->convolution->image] = pad;
    if (std::optional<WorkloadSource> source = match())
      return source;
    start.pads = {};
  }
  if (extents && product->contraction)
    start.prologues = matchPrologues(op, *product->contraction, *extents);
  bool hasPrologues = start.prologues[0].op || start.prologues[1].op;
  if (std::optional<WorkloadSource> source = match(); source || !hasPrologues)
    return source;
  start.prologues = {};
  return match();
}

std::string ftuner::explainFallback(linalg::LinalgOp op,
                                    const PathSupport &support) {
  std::string name = "'" + op->getName().getStringRef().str() + "' ";
  std::optional<Product> product = Product::match(op);
  if (!product)
    return name + "is no contraction";
  name += product->contraction ? "is a contraction " : "is a convolution ";
  WorkloadSource source;
  if (std::optional<StringRef> reason = matchWithoutEpilogue(*product, source))
    return name + reason->str();
  if (Type type = findUnsupportedType(source))
    return name + "of elements of type " + debugString(type) +
           ": uKernels take integers of 8, 16, 32 or 64 bits, and booleans";
  return name + "that no codegen path computes: " +
         llvm::toString(support.check(describe(source)));
}
