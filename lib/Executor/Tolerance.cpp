//===- Tolerance.cpp - How far a right result may be off ------------------===//
#include "FTuner/Executor/Tolerance.h"

#include "FTuner/Dialect/UKernel/Utils/Roundings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/DenseSet.h"
#include <cmath>

using namespace mlir;

namespace ftuner {

/// What is tolerated of an estimate; a result's tolerance has the same margin
/// over the errors of right programs in f32.
constexpr double kMargin = 3;
/// Elements of a result that may flip beyond the estimate.
constexpr double kSingleFlips = 2;
/// Of a product of f32 by tf32 (Tolerance.h).
constexpr double kTF32Error = 2.9e-4;
/// Of one by factors that are cut off: what all results are too small by, and
/// what that spreads by.
constexpr double kTruncationBias = 7.0e-4, kTruncationSpread = 3.1e-4;

double Tolerance::limitFor(const Comparison &comparison) const {
  if (unit == 0)
    return relative;
  double single = std::sqrt(kSingleFlips) * unit * comparison.largestShare;
  return std::max(relative, std::min(limit, std::hypot(relative, single)));
}

namespace {
/// What distinguishes a computed value from that of the reference, relative.
struct Noise {
  /// The tolerance of the widest type that is computed in.
  double base = 0;
  /// In all elements, a little.
  double spread = 0;
  /// In all elements by the same factor.
  double bias = 0;
  /// In some elements a unit of their last place: the Frobenius error of all.
  double flips = 0;
  /// Unit and tolerance of the coarsest narrow type, 0 without any.
  double unit = 0, limit = 0;
  /// In a loop, or in a flip that many elements share.
  bool isSaturated = false;

  void add(const Noise &other) {
    base = std::max(base, other.base);
    spread = std::max(spread, other.spread);
    bias = std::max(bias, other.bias);
    flips = std::max(flips, other.flips);
    unit = std::max(unit, other.unit);
    limit = std::max(limit, other.limit);
    isSaturated |= other.isSaturated;
  }
  /// Without the bias.
  double total() const { return std::hypot(spread, flips); }
};

/// Follows values back to the function's arguments.
class NoiseAnalysis {
public:
  NoiseAnalysis(FunctionOpInterface function, FactorPrecision precision);
  Noise visit(Value value);
  /// The noise of a value that is stored as `element`.
  static void round(Noise &noise, Type element);

private:
  SmallVector<Value> getSources(BlockArgument argument);
  SmallVector<Value> getSources(OpResult result);
  void compute(Noise &noise, OpResult result) const;
  /// Adds what becomes of the factors of a product of f32.
  void roundFactors(Noise &noise) const;
  static void broadcast(Noise &noise, BlockArgument argument);

  FunctionOpInterface function;
  FactorPrecision precision;
  llvm::DenseMap<Operation *, SmallVector<CallOpInterface>> calls;
  llvm::DenseMap<Value, Noise> known;
  llvm::DenseSet<Value> active;
};
} // namespace

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

static std::optional<DataType> getFloat(Type type) {
  type = getElementTypeOrSelf(type);
  if (type.isF16())
    return DataType::F16;
  if (type.isBF16())
    return DataType::BF16;
  if (type.isF32())
    return DataType::F32;
  if (type.isF64())
    return DataType::F64;
  return std::nullopt;
}

static bool isNarrow(DataType type) {
  return type == DataType::F16 || type == DataType::BF16;
}

/// The distance of neighbours over the smaller one, at most.
static double getUnit(DataType type) {
  return std::ldexp(1.0, type == DataType::F16 ? -10 : -7);
}

/// The error of what is not computed bit by bit as in the reference; narrow
/// types compute in f32.
static double getArithmeticError(DataType type) {
  return getDefaultTolerance(isNarrow(type) ? DataType::F32 : type) / 10;
}

void NoiseAnalysis::round(Noise &noise, Type element) {
  std::optional<DataType> type = getFloat(element);
  if (!type)
    return;
  if (!isNarrow(*type)) {
    noise.base = std::max(noise.base, getDefaultTolerance(*type));
    return;
  }
  double unit = getUnit(*type);
  noise.unit = std::max(noise.unit, unit);
  noise.limit = std::max(noise.limit, getDefaultTolerance(*type));
  noise.flips = std::max(
      noise.flips, std::sqrt(std::hypot(noise.spread, noise.bias) * unit));
  noise.spread = 0;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// Whether compiled code gives the bits that the reference gives.
static bool isCorrectlyRounded(Operation *op) {
  return isa<arith::ArithDialect>(op->getDialect()) ||
         isa<math::CeilOp, math::FloorOp, math::FmaOp, math::RoundOp,
             math::RoundEvenOp, math::SqrtOp, math::TruncOp>(op);
}

/// Whether an operator sums products with a factor of f32, beside which others
/// may be cast exactly.
static bool multipliesF32(linalg::LinalgOp op) {
  if (op.getNumReductionLoops() == 0)
    return false;
  std::optional<SumOfProducts> parts = matchSumOfProducts(*op.getBlock());
  return parts && llvm::any_of(llvm::seq(2u), [&](unsigned factor) {
           return parts->narrowFactor(factor).getType().isF32();
         });
}

void NoiseAnalysis::roundFactors(Noise &noise) const {
  switch (precision) {
  case FactorPrecision::F32:
    return;
  case FactorPrecision::TF32:
    noise.base = std::max(noise.base, kMargin * kTF32Error);
    noise.spread = std::hypot(noise.spread, kTF32Error);
    return;
  case FactorPrecision::TF32Truncate:
    noise.bias += kTruncationBias;
    noise.spread = std::hypot(noise.spread, kTruncationSpread);
    noise.base =
        std::max(noise.base, kMargin * std::hypot(noise.bias, noise.spread));
    return;
  }
}

/// Adds to what an operation's operands bring along what it does itself.
void NoiseAnalysis::compute(Noise &noise, OpResult result) const {
  Operation *op = result.getOwner();
  std::optional<DataType> type = getFloat(result.getType());
  if (!type)
    return;
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  bool isReduction = structured && structured.getNumReductionLoops() > 0;
  if (structured && multipliesF32(structured))
    roundFactors(noise);
  if (isReduction && accumulates(structured, result.getResultNumber())) {
    noise.spread = std::max(noise.total(), getArithmeticError(*type));
    noise.flips = 0;
    return round(noise, result.getType());
  }
  // Softmax and the like have their roundings inside.
  bool isAggregate = isa<linalg::AggregatedOpInterface>(op);
  if (isReduction || isAggregate) {
    noise.spread = std::max(noise.total(), getArithmeticError(*type));
    noise.isSaturated |= isNarrow(*type);
    return round(noise, result.getType());
  }
  if (!roundsResults(op))
    return;
  if (!isCorrectlyRounded(op))
    noise.spread = std::max(noise.spread, getArithmeticError(*type));
  round(noise, result.getType());
}

/// A flip that an elementwise operator reads for many of its elements is no
/// exception among them.
void NoiseAnalysis::broadcast(Noise &noise, BlockArgument argument) {
  auto op = dyn_cast<linalg::LinalgOp>(argument.getOwner()->getParentOp());
  if (!op || op.getNumReductionLoops() > 0 || noise.flips == 0)
    return;
  AffineMap map = op.getMatchingIndexingMap(op.getMatchingOpOperand(argument));
  noise.isSaturated |= map.getNumResults() < op.getNumLoops();
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

NoiseAnalysis::NoiseAnalysis(FunctionOpInterface function,
                             FactorPrecision precision)
    : function(function), precision(precision) {
  function->getParentOp()->walk([&](CallOpInterface call) {
    if (Operation *callee = call.resolveCallable())
      calls[callee].push_back(call);
  });
}

/// What leaves the regions of an operation: value `number` of each, or all
/// where the terminators do not have `count`.
static void appendYielded(Operation *op, unsigned number, unsigned count,
                          SmallVectorImpl<Value> &values) {
  for (Region &region : op->getRegions())
    for (Block &block : region) {
      if (!block.mightHaveTerminator())
        continue;
      ValueRange yielded = block.getTerminator()->getOperands();
      if (yielded.size() == count)
        values.push_back(yielded[number]);
      else
        llvm::append_range(values, yielded);
    }
}

SmallVector<Value> NoiseAnalysis::getSources(BlockArgument argument) {
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto structured = dyn_cast<linalg::LinalgOp>(parent))
    return {structured.getMatchingOpOperand(argument)->get()};
  SmallVector<Value> values;
  if (isa<FunctionOpInterface>(parent) && argument.getOwner()->isEntryBlock()) {
    if (parent != function)
      for (CallOpInterface call : calls[parent])
        if (argument.getArgNumber() < call.getArgOperands().size())
          values.push_back(call.getArgOperands()[argument.getArgNumber()]);
    return values;
  }
  if (auto loop = dyn_cast<LoopLikeOpInterface>(parent))
    if (OpOperand *init = loop.getTiedLoopInit(argument)) {
      values.push_back(init->get());
      if (OpOperand *yielded = loop.getTiedLoopYieldedValue(argument))
        values.push_back(yielded->get());
      return values;
    }
  llvm::append_range(values, parent->getOperands());
  appendYielded(parent, 0, /*count=*/~0u, values);
  return values;
}

SmallVector<Value> NoiseAnalysis::getSources(OpResult result) {
  Operation *op = result.getOwner();
  unsigned number = result.getResultNumber();
  SmallVector<Value> values;
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    return {structured.getBlock()->getTerminator()->getOperand(number)};
  if (auto call = dyn_cast<CallOpInterface>(op))
    if (Operation *callee = call.resolveCallable();
        callee && callee->getNumRegions() == 1 &&
        !callee->getRegion(0).empty()) {
      appendYielded(callee, number, op->getNumResults(), values);
      return values;
    }
  // What scf.while returns is not what its second region yields.
  if (auto loop = dyn_cast<LoopLikeOpInterface>(op))
    if (op->getNumRegions() == 1 &&
        loop.getYieldedValues().size() == op->getNumResults() &&
        loop.getInits().size() == op->getNumResults())
      return {loop.getInits()[number], loop.getYieldedValues()[number]};
  llvm::append_range(values, op->getOperands());
  appendYielded(op, number, op->getNumResults(), values);
  return values;
}

Noise NoiseAnalysis::visit(Value value) {
  if (auto it = known.find(value); it != known.end())
    return it->second;
  Noise noise;
  if (!active.insert(value).second) {
    noise.isSaturated = true;
    return noise;
  }
  auto result = dyn_cast<OpResult>(value);
  for (Value source :
       result ? getSources(result) : getSources(cast<BlockArgument>(value)))
    noise.add(visit(source));
  if (result)
    compute(noise, result);
  else
    broadcast(noise, cast<BlockArgument>(value));
  active.erase(value);
  known[value] = noise;
  return noise;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

static Tolerance getTolerance(Noise noise, DataType type) {
  if (!isFloat(type))
    return {};
  double base =
      std::max(noise.base, isNarrow(type) ? 0.0 : getDefaultTolerance(type));
  if (isNarrow(type)) {
    noise.unit = std::max(noise.unit, getUnit(type));
    noise.limit = std::max(noise.limit, getDefaultTolerance(type));
  }
  if (noise.unit == 0)
    return {base, 0, base};
  // Where nothing but exact operations is on the way, a little nevertheless:
  // a GPU's own instructions may differ from the CPU's.
  double least = std::sqrt(getArithmeticError(DataType::F32) * noise.unit);
  double estimate =
      kMargin * std::max(least, std::hypot(noise.total(), noise.bias));
  return {std::max(base, noise.isSaturated ? noise.limit
                                           : std::min(noise.limit, estimate)),
          noise.unit, noise.limit};
}

std::vector<Tolerance> getTolerances(FunctionOpInterface function,
                                     FactorPrecision precision) {
  NoiseAnalysis analysis(function, precision);
  std::vector<Tolerance> tolerances;
  for (auto [index, type] : llvm::enumerate(function.getResultTypes())) {
    Noise noise;
    for (Block &block : function.getFunctionBody())
      if (block.getNumSuccessors() == 0 &&
          index < block.getTerminator()->getNumOperands())
        noise.add(analysis.visit(block.getTerminator()->getOperand(index)));
    std::optional<DataType> element = getFloat(type);
    tolerances.push_back(element ? getTolerance(noise, *element) : Tolerance());
  }
  return tolerances;
}

} // namespace ftuner
