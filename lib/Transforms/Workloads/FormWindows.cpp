//===- FormWindows.cpp - Pools and stencils to ukernel.pointwise ----------===//
//
// An operator that reduces windows of static extents to one element for each
// point of its other loops (pooling, a convolution of each channel) becomes a
// `ukernel.pointwise` with taps. What importers write around it becomes part of
// the operator: a tensor.pad is the padding of the input, a fill or a broadcast
// is where the accumulators start, and the elementwise operator that reads the
// result is the region `map`.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Analysis/LinalgStructure.h"
#include "FTuner/Analysis/LoopSplit.h"
#include "FTuner/Dialect/UKernel/Utils/PromotedFloats.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Transforms/Passes.h"
#include "OperatorSizes.h"
#include "PointwiseFormation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/RegionUtils.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELFORMWINDOWSPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;
using ukernel::PointwiseOp;

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// Returns whether an operand's positions are such that kernels with taps have
/// them: sums of multiples, and where the tensor is padded no loop alone.
static bool hasTapPositions(linalg::LinalgOp op, OpOperand &operand,
                            ArrayRef<unsigned> reduced) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  auto type = dyn_cast<RankedTensorType>(operand.get().getType());
  if (!type)
    return map.getNumResults() == 0;
  tensor::PadOp pad = paddingOf(operand.get());
  if (pad && (!matchPattern(pad.getConstantPaddingValue(), m_Constant()) ||
              !canReadSource(pad, map)))
    return false;
  for (auto [dim, position] : llvm::enumerate(map.getResults())) {
    auto constant = dyn_cast<AffineConstantExpr>(position);
    if (constant && (constant.getValue() != 0 || type.getDimSize(dim) != 1))
      return false;
    if (!constant && !isWindow(position, op.getNumLoops()))
      return false;
    // Kernels take the extents of windows from the operator.
    auto loop = dyn_cast<AffineDimExpr>(position);
    if (loop && llvm::is_contained(reduced, loop.getPosition()) &&
        type.isDynamicDim(dim))
      return false;
  }
  return true;
}

/// Returns whether an operator reduces windows of static extents to one element
/// for each point of its other loops.
static bool reducesWindows(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumReductionLoops() == 0 ||
      op.getNumParallelLoops() == 0 ||
      op.getNumParallelLoops() > PointwiseOp::kMaxLoops ||
      op.getNumParallelLoops() + op.getNumReductionLoops() !=
          op.getNumLoops() ||
      splitLoops(op).isAcrossLanes || op.hasIndexSemantics() ||
      !hasScalarBody(op))
    return false;
  SmallVector<unsigned> reduced;
  op.getReductionDims(reduced);
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  double taps = 1;
  for (unsigned loop : reduced) {
    if (ShapedType::isDynamic(extents[loop]) || extents[loop] < 1)
      return false;
    taps *= static_cast<double>(extents[loop]);
  }
  if (taps > PointwiseOp::kMaxTaps)
    return false;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    if (!map.isProjectedPermutation() ||
        map.getNumResults() != op.getNumParallelLoops() ||
        llvm::any_of(reduced,
                     [&](unsigned loop) { return map.isFunctionOfDim(loop); }))
      return false;
  }
  bool hasWindows = false;
  for (OpOperand *input : op.getDpsInputOperands()) {
    if (!op.payloadUsesValueFromOperand(input))
      continue;
    if (!hasTapPositions(op, *input, reduced))
      return false;
    hasWindows |= !op.getMatchingIndexingMap(input).isProjectedPermutation(
        /*allowZeroInResults=*/true);
  }
  return hasWindows;
}

bool ftuner::isWindowWorkload(linalg::LinalgOp op, const PathSupport &support) {
  // Any path that computes points takes windows, too.
  if (llvm::errorToBool(support.check(Workload::vectorSum(SizeRange()))))
    return false;
  auto isWindow = [](Operation *user) {
    auto window = dyn_cast<linalg::LinalgOp>(user);
    return window && reducesWindows(window);
  };
  return isa<linalg::FillOp>(*op)
             ? !op->use_empty() && llvm::all_of(op->getUsers(), isWindow)
             : reducesWindows(op);
}

/// Returns the elementwise operator that alone reads the result of an operator
/// with windows, at the same points; null if there is none.
static linalg::LinalgOp findConsumer(linalg::LinalgOp window) {
  if (window->getNumResults() != 1 || !window->hasOneUse())
    return {};
  OpOperand &use = *window->getUses().begin();
  auto consumer = dyn_cast<linalg::LinalgOp>(use.getOwner());
  if (!consumer || consumer->getBlock() != window->getBlock() ||
      !consumer.isDpsInput(&use) ||
      consumer.getNumLoops() != window.getNumParallelLoops() ||
      !consumer.getMatchingIndexingMap(&use).isPermutation() ||
      !describePoints(consumer))
    return {};
  return consumer;
}

//===----------------------------------------------------------------------===//
// Formation
//===----------------------------------------------------------------------===//

namespace {
/// Builds the operator for one window, with its consumer if there is one.
class WindowFormation {
public:
  WindowFormation(linalg::LinalgOp op, linalg::LinalgOp consumer,
                  RewriterBase &rewriter)
      : op(op), consumer(consumer), rewriter(rewriter),
        context(rewriter.getContext()), promote(promotesToF32(op)) {
    op.getReductionDims(reduced);
    if (consumer)
      points = describePoints(consumer);
  }
  /// Builds at the rewriter's insertion point. Returns null if kernels do not
  /// have the types of elements.
  PointwiseOp build();

private:
  /// An input of the operator, with a map from its axes and loops.
  struct Input {
    Value value;
    AffineMap map;
    TypedAttr padding;
  };
  /// Inputs by number that a body takes as arguments or from outside.
  using Arguments = SmallVector<std::pair<Value, unsigned>>;

  bool numberLoops();
  AffineExpr pointDim(unsigned loop) {
    return getAffineDimExpr(numLoops == 1 ? 0 : 2 + loop, context);
  }
  unsigned numDims() const {
    return 2 + (numLoops == 1 ? 0 : numLoops) + reduced.size();
  }
  /// Returns a map over the loops of the operator with windows as one over the
  /// new operator's axes and loops.
  AffineMap fromWindow(AffineMap map);
  /// Like `fromWindow`, for a map of `PointwiseDescription`; `numbers` has the
  /// new number of each of its loops.
  AffineMap fromPoints(const PointwiseDescription &described,
                       ArrayRef<unsigned> numbers, AffineMap map);
  std::optional<unsigned> addInput(Value value, AffineMap map,
                                   TypedAttr padding = {});
  bool addScalars(ArrayRef<Value> scalars, Arguments &arguments);
  bool addCaptured(Region &region, Arguments &arguments);
  bool addTensor(OpOperand &operand, Arguments &arguments);
  bool addPoints(const PointwiseDescription &described,
                 ArrayRef<unsigned> numbers, Value without,
                 Arguments &arguments);
  bool addStart(OpOperand &init);
  bool addInputs();
  Block *createBlock(Region &region, bool hasTaps, TypeRange accumulators);
  /// Maps the arguments of bodies to the arguments of a new block.
  void mapArguments(const Arguments &arguments, Block *block, bool hasTaps,
                    IRMapping &mapping);
  Value promoted(Value value) {
    return promote ? ftuner::promoted(rewriter, op.getLoc(), value) : value;
  }
  SmallVector<Type> accumulatorTypes();
  void buildStart(PointwiseOp result);
  void fuseMultiplyAdds(Block &block, size_t numAccumulators);
  void buildReduce(PointwiseOp result);
  void buildMap(PointwiseOp result);

  linalg::LinalgOp op, consumer;
  RewriterBase &rewriter;
  MLIRContext *context;
  /// True if sums of f16 and bf16 are computed in f32 and rounded once.
  bool promote;
  SmallVector<unsigned> reduced;
  std::optional<PointwiseDescription> points;
  unsigned numLoops = 0;
  /// The new number of each parallel loop of the operator.
  DenseMap<unsigned, unsigned> numberOfLoop;
  SmallVector<Input> inputs;
  Arguments ofWindow, ofConsumer;
  /// Start of an accumulator: a constant operation, an input, or the body of a
  /// producer.
  struct Start {
    Value constant;
    std::optional<unsigned> input;
    linalg::LinalgOp producer;
    Arguments arguments;
  };
  SmallVector<Start> starts;
};
} // namespace

/// Numbers the loops in the order of the dimensions of the new first output.
bool WindowFormation::numberLoops() {
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  numLoops = map.getNumResults();
  auto numbers = llvm::to_vector(llvm::seq(numLoops));
  if (consumer) {
    OpOperand &use = *op->getUses().begin();
    for (auto [dim, position] :
         llvm::enumerate(consumer.getMatchingIndexingMap(&use).getResults())) {
      unsigned loop = cast<AffineDimExpr>(position).getPosition();
      numbers[dim] = llvm::find(points->loops, loop) - points->loops.begin();
    }
  }
  for (auto [dim, position] : llvm::enumerate(map.getResults()))
    numberOfLoop[cast<AffineDimExpr>(position).getPosition()] = numbers[dim];
  return numberOfLoop.size() == numLoops;
}

AffineMap WindowFormation::fromWindow(AffineMap map) {
  SmallVector<AffineExpr> dims(map.getNumDims());
  for (auto [loop, number] : numberOfLoop)
    dims[loop] = pointDim(number);
  for (auto [number, loop] : llvm::enumerate(reduced))
    dims[loop] = getAffineDimExpr(numDims() - reduced.size() + number, context);
  return map.replaceDimsAndSymbols(dims, {}, numDims(), 0);
}

AffineMap WindowFormation::fromPoints(const PointwiseDescription &described,
                                      ArrayRef<unsigned> numbers,
                                      AffineMap map) {
  unsigned before = described.numDims(), first = before - numbers.size();
  SmallVector<AffineExpr> dims(before, getAffineConstantExpr(0, context));
  for (auto [loop, number] : llvm::enumerate(numbers))
    dims[first + loop] = pointDim(number);
  return map.replaceDimsAndSymbols(dims, {}, numDims(), 0);
}

std::optional<unsigned> WindowFormation::addInput(Value value, AffineMap map,
                                                  TypedAttr padding) {
  if (!isPointElement(getElementTypeOrSelf(value.getType())))
    return std::nullopt;
  if (isa<RankedTensorType>(value.getType()))
    value = collapseUnitDims(rewriter, value, map);
  inputs.push_back({value, dropConstants(map), padding});
  return inputs.size() - 1;
}

/// Adds scalars that a body takes from outside, without constants.
bool WindowFormation::addScalars(ArrayRef<Value> scalars,
                                 Arguments &arguments) {
  AffineMap none = AffineMap::get(numDims(), 0, context);
  for (Value scalar : scalars) {
    Value value = scalar;
    if (value.getType().isIndex())
      value = arith::IndexCastOp::create(rewriter, op.getLoc(),
                                         rewriter.getI64Type(), value);
    std::optional<unsigned> number = addInput(value, none);
    if (!number)
      return false;
    arguments.push_back({scalar, *number});
  }
  return true;
}

bool WindowFormation::addCaptured(Region &region, Arguments &arguments) {
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(region, captured);
  SmallVector<Value> scalars;
  for (Value value : captured)
    if (!matchPattern(value, m_Constant()))
      scalars.push_back(value);
  return addScalars(scalars, arguments);
}

/// Adds an input of the operator with windows, without its padding.
bool WindowFormation::addTensor(OpOperand &operand, Arguments &arguments) {
  Value value = operand.get();
  AffineMap map = fromWindow(op.getMatchingIndexingMap(&operand));
  TypedAttr padding;
  if (tensor::PadOp pad = paddingOf(value)) {
    matchPattern(pad.getConstantPaddingValue(), m_Constant(&padding));
    map = mapOfSource(pad, map);
    value = pad.getSource();
  }
  std::optional<unsigned> number = addInput(value, map, padding);
  if (number)
    arguments.push_back({op.getMatchingBlockArgument(&operand), *number});
  return number.has_value();
}

/// Adds the inputs of an elementwise operator, except for `without`.
bool WindowFormation::addPoints(const PointwiseDescription &described,
                                ArrayRef<unsigned> numbers, Value without,
                                Arguments &arguments) {
  for (const PointwiseDescription::Input &input : described.inputs) {
    if (input.value == without)
      continue;
    std::optional<unsigned> number =
        addInput(input.value, fromPoints(described, numbers, input.map));
    if (!number)
      return false;
    arguments.push_back({input.argument, *number});
  }
  return addScalars(described.scalars, arguments);
}

bool WindowFormation::addStart(OpOperand &init) {
  Start &start = starts.emplace_back();
  AffineMap map = op.getMatchingIndexingMap(&init);
  Type element = getElementTypeOrSelf(init.get().getType());
  Value filled = matchFill(init.get());
  if (filled && filled.getType() == element) {
    if (matchPattern(filled, m_Constant())) {
      start.constant = filled;
      return true;
    }
    start.input = addInput(filled, AffineMap::get(numDims(), 0, context));
    return start.input.has_value();
  }
  auto producer = init.get().getDefiningOp<linalg::LinalgOp>();
  if (producer && producer->hasOneUse() && producer->getNumResults() == 1 &&
      !producer.hasIndexSemantics()) {
    std::optional<PointwiseDescription> described = describePoints(producer);
    if (described) {
      SmallVector<unsigned> numbers;
      for (AffineExpr position : map.getResults())
        numbers.push_back(
            numberOfLoop.at(cast<AffineDimExpr>(position).getPosition()));
      start.producer = producer;
      return addPoints(*described, numbers, /*without=*/{}, start.arguments);
    }
  }
  start.input = addInput(init.get(), fromWindow(map));
  return start.input.has_value();
}

bool WindowFormation::addInputs() {
  for (OpOperand *input : op.getDpsInputOperands()) {
    if (!op.payloadUsesValueFromOperand(input))
      continue;
    if (!addTensor(*input, ofWindow))
      return false;
  }
  if (!addCaptured(op->getRegion(0), ofWindow))
    return false;
  for (OpOperand &init : op.getDpsInitsMutable())
    if (!isPointElement(getElementTypeOrSelf(init.get().getType())) ||
        !addStart(init))
      return false;
  if (!consumer)
    return true;
  auto numbers = llvm::to_vector(llvm::seq(numLoops));
  return addPoints(*points, numbers, op->getResult(0), ofConsumer);
}

/// Returns the block of a region, with an argument for each input, or for each
/// without taps, and for each accumulator.
Block *WindowFormation::createBlock(Region &region, bool hasTaps,
                                    TypeRange accumulators) {
  SmallVector<Type> types;
  auto result = cast<PointwiseOp>(region.getParentOp());
  for (auto [number, input] : llvm::enumerate(inputs))
    if (hasTaps || !result.hasTaps(number))
      types.push_back(getElementTypeOrSelf(input.value.getType()));
  llvm::append_range(types, accumulators);
  return rewriter.createBlock(&region, {}, types,
                              SmallVector<Location>(types.size(), op.getLoc()));
}

void WindowFormation::mapArguments(const Arguments &arguments, Block *block,
                                   bool hasTaps, IRMapping &mapping) {
  auto result = cast<PointwiseOp>(block->getParentOp());
  SmallVector<unsigned> plain = result.getPlainInputs();
  for (auto [value, input] : arguments) {
    unsigned number =
        hasTaps ? input : llvm::find(plain, input) - plain.begin();
    Value argument = block->getArgument(number);
    if (value.getType().isIndex())
      argument = arith::IndexCastOp::create(rewriter, op.getLoc(),
                                            value.getType(), argument);
    mapping.map(value, argument);
  }
}

SmallVector<Type> WindowFormation::accumulatorTypes() {
  return llvm::map_to_vector(
      op.getRegionOutputArgs(), [&](BlockArgument argument) -> Type {
        return promote && isNarrowFloat(argument.getType())
                   ? rewriter.getF32Type()
                   : argument.getType();
      });
}

void WindowFormation::buildStart(PointwiseOp result) {
  OpBuilder::InsertionGuard guard(rewriter);
  Block *block = createBlock(result.getStart(), /*hasTaps=*/false, {});
  SmallVector<unsigned> plain = result.getPlainInputs();
  SmallVector<Value> values;
  for (const Start &start : starts) {
    if (start.constant) {
      values.push_back(
          rewriter.clone(*start.constant.getDefiningOp())->getResult(0));
    } else if (start.input) {
      values.push_back(
          block->getArgument(llvm::find(plain, *start.input) - plain.begin()));
    } else {
      IRMapping mapping;
      mapArguments(start.arguments, block, /*hasTaps=*/false, mapping);
      values.push_back(
          cloneScalarBody(start.producer, {}, mapping, rewriter).front());
    }
  }
  for (Value &value : values)
    value = promoted(value);
  ukernel::YieldOp::create(rewriter, op.getLoc(), values);
}

/// Makes one operation of a product and the sum that adds it to an accumulator,
/// as the other codegen paths do for sums of products.
void WindowFormation::fuseMultiplyAdds(Block &block, size_t numAccumulators) {
  auto accumulators = block.getArguments().take_back(numAccumulators);
  for (auto sum : llvm::make_early_inc_range(block.getOps<arith::AddFOp>())) {
    for (auto [accumulator, added] : {std::pair(sum.getLhs(), sum.getRhs()),
                                      std::pair(sum.getRhs(), sum.getLhs())}) {
      auto product = added.getDefiningOp<arith::MulFOp>();
      if (!product || !product->hasOneUse() ||
          (!sum.getType().isF32() && !sum.getType().isF64()) ||
          !llvm::is_contained(accumulators, accumulator))
        continue;
      rewriter.setInsertionPoint(sum);
      rewriter.replaceOpWithNewOp<math::FmaOp>(sum, product.getLhs(),
                                               product.getRhs(), accumulator);
      rewriter.eraseOp(product);
      break;
    }
  }
}

void WindowFormation::buildReduce(PointwiseOp result) {
  OpBuilder::InsertionGuard guard(rewriter);
  ArrayRef<BlockArgument> accumulators = op.getRegionOutputArgs();
  Block *block =
      createBlock(result.getReduce(), /*hasTaps=*/true, accumulatorTypes());
  IRMapping mapping;
  mapArguments(ofWindow, block, /*hasTaps=*/true, mapping);
  for (auto [accumulator, argument] : llvm::zip_equal(
           accumulators, block->getArguments().take_back(accumulators.size())))
    mapping.map(accumulator, argument);
  SmallVector<Value> next = cloneScalarBody(op, {}, mapping, rewriter, promote);
  ukernel::YieldOp::create(rewriter, op.getLoc(), next);
  fuseMultiplyAdds(*block, accumulators.size());
}

void WindowFormation::buildMap(PointwiseOp result) {
  OpBuilder::InsertionGuard guard(rewriter);
  ArrayRef<BlockArgument> accumulators = op.getRegionOutputArgs();
  Block *block =
      createBlock(result.getMap(), /*hasTaps=*/false, accumulatorTypes());
  SmallVector<Value> values(
      block->getArguments().take_back(accumulators.size()));
  for (auto [value, accumulator] : llvm::zip_equal(values, accumulators))
    value = rounded(rewriter, op.getLoc(), value, accumulator.getType());
  if (consumer) {
    IRMapping mapping;
    mapArguments(ofConsumer, block, /*hasTaps=*/false, mapping);
    for (const PointwiseDescription::Input &input : points->inputs)
      if (input.value == op->getResult(0))
        mapping.map(input.argument, values.front());
    values = cloneScalarBody(consumer, points->loops, mapping, rewriter);
  }
  ukernel::YieldOp::create(rewriter, op.getLoc(), values);
}

PointwiseOp WindowFormation::build() {
  if (!numberLoops() || !addInputs())
    return {};
  SmallVector<AffineMap> maps;
  SmallVector<Value> values, outputs;
  SmallVector<Attribute> padded;
  bool isPadded = false;
  for (const Input &input : inputs) {
    values.push_back(input.value);
    maps.push_back(input.map);
    isPadded |= bool(input.padding);
    padded.push_back(input.padding ? Attribute(input.padding)
                                   : rewriter.getUnitAttr());
  }
  if (consumer) {
    outputs.assign(consumer.getDpsInits().begin(),
                   consumer.getDpsInits().end());
    auto numbers = llvm::to_vector(llvm::seq(numLoops));
    for (AffineMap map : points->outputMaps)
      maps.push_back(fromPoints(*points, numbers, map));
  } else {
    // The accumulators start elsewhere.
    for (OpOperand &init : op.getDpsInitsMutable()) {
      Value like = init.get();
      if (auto fill = like.getDefiningOp<linalg::FillOp>())
        like = fill.output();
      outputs.push_back(tensor::EmptyOp::create(
          rewriter, op.getLoc(),
          tensor::getMixedSizes(rewriter, op.getLoc(), like),
          getElementTypeOrSelf(like.getType())));
      maps.push_back(fromWindow(op.getMatchingIndexingMap(&init)));
    }
  }
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  SmallVector<int64_t> taps = llvm::map_to_vector(
      reduced, [&](unsigned loop) { return extents[loop]; });
  Operation *replaced = consumer ? consumer : op;
  auto result = PointwiseOp::create(
      rewriter, replaced->getLoc(), TypeRange(ValueRange(outputs)), values,
      outputs, rewriter.getAffineMapArrayAttr(maps),
      rewriter.getDenseI64ArrayAttr(taps),
      isPadded ? rewriter.getArrayAttr(padded) : ArrayAttr(),
      /*ranges=*/ArrayAttr(), /*plan=*/FlatSymbolRefAttr());
  buildStart(result);
  buildReduce(result);
  buildMap(result);
  return result;
}

/// Replaces an operator with windows, and its consumer if there is one, before
/// the rewriter's insertion point. Returns false if no codegen path computes
/// the operator.
static bool formWindow(linalg::LinalgOp op, linalg::LinalgOp consumer,
                       const PathSupport &support, ExtentAnalysis &extents,
                       RewriterBase &rewriter) {
  Operation *replaced = consumer ? consumer : op;
  PointwiseOp result = WindowFormation(op, consumer, rewriter).build();
  if (!result)
    return false;
  if (mayExceedPoints(cast<linalg::LinalgOp>(replaced), extents) ||
      llvm::errorToBool(support.check(
          toWorkload(cast<ukernel::OperatorOpInterface>(*result))))) {
    rewriter.eraseOp(result);
    return false;
  }
  settleSizes(result, extents, rewriter, "an operator with windows");
  rewriter.replaceOp(replaced, result.getResults());
  if (consumer)
    rewriter.eraseOp(op);
  return true;
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct UKernelFormWindowsPass
    : public ftuner::impl::UKernelFormWindowsPassBase<UKernelFormWindowsPass> {
  using UKernelFormWindowsPassBase::UKernelFormWindowsPassBase;

  void runOnOperation() override {
    FailureOr<PathSupport> support = supportOfPaths(getOperation(), paths);
    if (failed(support))
      return signalPassFailure();
    WalkResult result = getOperation().walk([&](FunctionOpInterface function) {
      if (!function.isExternal() && failed(formWindows(function, *support)))
        return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  LogicalResult formWindows(FunctionOpInterface function,
                            const PathSupport &support) {
    auto hasWindows = function->walk([](linalg::LinalgOp op) {
      return reducesWindows(op) ? WalkResult::interrupt()
                                : WalkResult::advance();
    });
    if (!hasWindows.wasInterrupted())
      return success();
    simplify(function);
    if (failed(fuseElementwise(function)))
      return failure();
    // The operator behind a window is where the new one stands. Each takes one.
    DenseMap<Operation *, linalg::LinalgOp> windowOf;
    SmallVector<linalg::LinalgOp> anchors;
    function->walk([&](linalg::LinalgOp op) {
      if (!reducesWindows(op)) {
        if (windowOf.contains(op))
          anchors.push_back(op);
        return;
      }
      linalg::LinalgOp consumer = findConsumer(op);
      if (consumer && windowOf.try_emplace(consumer, op).second)
        return;
      windowOf[op] = op;
      anchors.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    ExtentAnalysis extents(function);
    for (linalg::LinalgOp anchor : anchors) {
      linalg::LinalgOp op = windowOf.at(anchor);
      rewriter.setInsertionPoint(anchor);
      bool isFormed =
          anchor != op && formWindow(op, anchor, support, extents, rewriter);
      rewriter.setInsertionPoint(op);
      if (isFormed || formWindow(op, {}, support, extents, rewriter))
        ++numFormed;
    }
    simplify(function);
    return success();
  }

  /// Removes unused operations, such as padded tensors.
  void simplify(FunctionOpInterface function) {
    RewritePatternSet patterns(&getContext());
    memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
    tensor::DimOp::getCanonicalizationPatterns(patterns, &getContext());
    // It does not matter whether the patterns reached a fixed form.
    (void)applyPatternsGreedily(function, std::move(patterns));
  }
};
} // namespace
