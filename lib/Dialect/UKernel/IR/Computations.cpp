//===- Computations.cpp - Computations of operators -----------------------===//
#include "FTuner/Dialect/UKernel/IR/Computations.h"

#include "FTuner/Dialect/UKernel/Utils/Roundings.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/CastInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ftuner;

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

ElementType ftuner::toElementType(Type type) {
  type = getElementTypeOrSelf(type);
  if (type.isSignlessInteger()) {
    static constexpr std::pair<unsigned, ElementType> integers[] = {
        {1, ElementType::I1},
        {8, ElementType::I8},
        {16, ElementType::I16},
        {32, ElementType::I32},
        {64, ElementType::I64}};
    for (auto [bits, integer] : integers)
      if (type.getIntOrFloatBitWidth() <= bits)
        return integer;
    return ElementType::Other;
  }
  return TypeSwitch<Type, ElementType>(type)
      .Case([](Float64Type) { return ElementType::F64; })
      .Case([](Float32Type) { return ElementType::F32; })
      .Case([](FloatTF32Type) { return ElementType::TF32; })
      .Case([](Float16Type) { return ElementType::F16; })
      .Case([](BFloat16Type) { return ElementType::BF16; })
      .Default([](Type) { return ElementType::Other; });
}

/// A sum of multiples of dimensions, which the operator's verifier asks for.
static AffineForm toAffineForm(AffineExpr position, unsigned numAxes) {
  SmallVector<int64_t> coefficients;
  LogicalResult isFlat = getFlattenedAffineExpr(
      position, numAxes, /*numSymbols=*/0, &coefficients);
  (void)isFlat;
  assert(succeeded(isFlat) && coefficients.size() == numAxes + 1);
  AffineForm form;
  for (unsigned axis = 0; axis < numAxes; ++axis)
    if (coefficients[axis] != 0)
      form.terms.push_back({axis, coefficients[axis]});
  form.constant = coefficients.back();
  return form;
}

Operand ftuner::toOperand(OperandRole role, Type type, AffineMap map) {
  Operand operand(role, {}, toElementType(type));
  for (AffineExpr position : map.getResults())
    if (auto axis = dyn_cast<AffineDimExpr>(position))
      operand.axes.push_back(axis.getPosition());
  if (operand.axes.size() == map.getNumResults())
    return operand;
  operand.axes.clear();
  for (AffineExpr position : map.getResults()) {
    operand.windows.push_back(toAffineForm(position, map.getNumDims()));
    operand.axes.push_back(operand.windows.back().terms.front().axis);
  }
  return operand;
}

void ftuner::addLoops(ArrayRef<ukernel::FusedLoop> loops,
                      ArrayRef<int64_t> sizes, Workload &workload) {
  for (auto [number, loop] : llvm::enumerate(loops)) {
    int64_t extent = sizes[workload.axes.size() + number];
    SizeRange range;
    if (ShapedType::isStatic(extent))
      range = SizeRange::fixed(std::max<int64_t>(extent, 1));
    workload.axes[loop.axis].loops.push_back(
        {StringRef(loop.name).upper(), range});
  }
  for (Axis &axis : workload.axes) {
    if (!axis.isFused())
      continue;
    int64_t fixed = 1;
    bool isDynamic = false;
    for (const Loop &loop : axis.loops)
      loop.range.isFixed() ? fixed *= loop.range.min : isDynamic = true;
    // Loops without a point count as one, in the axis as well.
    if (!isDynamic)
      axis.range = SizeRange::fixed(fixed);
    else if (axis.range.isOpen() && axis.range.min <= 1)
      axis.range = {axis.range.min * fixed, std::nullopt, fixed};
  }
}

/// The terms that are loops of fused axes as such, dimensions behind the axes
/// that the form has counted as more axes.
static void nameLoops(AffineForm &form, unsigned numAxes,
                      ArrayRef<ukernel::FusedLoop> loops) {
  for (AffineForm::Term &term : form.terms) {
    if (term.axis < numAxes)
      continue;
    unsigned number = term.axis - numAxes;
    term.axis = loops[number].axis;
    term.loop = llvm::count_if(loops.take_front(number), [&](const auto &loop) {
      return loop.axis == term.axis;
    });
  }
}

Operand ftuner::toOperand(OperandRole role, Type type, AffineMap map,
                          unsigned numAxes, ArrayRef<ukernel::FusedLoop> loops,
                          ArrayRef<ReassociationIndices> groups) {
  Operand operand(role, {}, toElementType(type));
  for (const ReassociationIndices &group : groups) {
    AffineForm form =
        toAffineForm(map.getResult(group.front()), map.getNumDims());
    nameLoops(form, numAxes, loops);
    if (group.size() > 1)
      form = AffineForm::ofAxis(form.terms.front().axis);
    operand.axes.push_back(form.terms.front().axis);
    operand.windows.push_back(std::move(form));
  }
  if (llvm::all_of(operand.windows, [](const AffineForm &form) {
        return form.asAxis().has_value();
      }))
    operand.windows.clear();
  return operand;
}

void ftuner::addOperands(ukernel::OperatorOpInterface op, Workload &workload) {
  SmallVector<ukernel::FusedLoop> loops = op.getFusedLoops();
  ArrayRef<int64_t> padded = ukernel::paddedRowsOf(op);
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    OperandRole role = op.getOperandRole(number);
    Type type = operand.get().getType();
    AffineMap map = op.getMatchingIndexingMap(&operand);
    workload.operands.push_back(
        loops.empty() ? toOperand(role, type, map)
                      : toOperand(role, type, map, op.getNumAxes(), loops,
                                  ukernel::groupDimensions(op, number)));
    workload.operands.back().outside = op.getOutside(number);
    workload.operands.back().isPitched = llvm::is_contained(padded, number);
  }
}

//===----------------------------------------------------------------------===//
// Computations
//===----------------------------------------------------------------------===//

/// Returns the kind of an operation of the dialects arith and math.
static OperationKind kindOf(Operation &op) {
  if (isa<math::FmaOp>(op))
    return OperationKind::MultiplyAdd;
  if (isa<math::MathDialect>(op.getDialect()))
    return OperationKind::Function;
  if (isa<CastOpInterface>(op))
    return OperationKind::Cast;
  return llvm::TypeSwitch<Operation *, OperationKind>(&op)
      .Case<arith::AddFOp, arith::SubFOp, arith::NegFOp, arith::AddIOp,
            arith::SubIOp>([](auto) { return OperationKind::Add; })
      .Case<arith::MulFOp, arith::MulIOp>(
          [](auto) { return OperationKind::Multiply; })
      .Case<arith::DivFOp, arith::RemFOp, arith::DivSIOp, arith::DivUIOp,
            arith::FloorDivSIOp, arith::CeilDivSIOp, arith::CeilDivUIOp,
            arith::RemSIOp, arith::RemUIOp>(
          [](auto) { return OperationKind::Divide; })
      .Case<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
            arith::MinNumFOp, arith::MaxSIOp, arith::MaxUIOp, arith::MinSIOp,
            arith::MinUIOp>([](auto) { return OperationKind::Extreme; })
      .Case<arith::CmpFOp, arith::CmpIOp>(
          [](auto) { return OperationKind::Compare; })
      .Case([](arith::SelectOp) { return OperationKind::Select; })
      .Default([](auto) { return OperationKind::Bitwise; });
}

std::optional<Operations> ftuner::operationsOf(Operation &op) {
  if (!isa_and_nonnull<arith::ArithDialect, math::MathDialect>(
          op.getDialect()) ||
      op.hasTrait<OpTrait::ConstantLike>() || op.getNumResults() != 1 ||
      op.getResult(0).getType().isIndex())
    return std::nullopt;
  Operations result;
  result.resultType = toElementType(op.getResult(0).getType());
  // Of a choice the last operand is one of the values, of a power of a float to
  // an integer the first one.
  Type operandType = op.getOperands().back().getType();
  for (Type type : op.getOperandTypes())
    if (isa<FloatType>(getElementTypeOrSelf(type)))
      operandType = type;
  result.operandType = toElementType(operandType);
  result.kind = kindOf(op);
  return result;
}

/// Adds an operation to those it equals, if it counts at all.
static void addOperation(std::vector<Operations> &operations, Operation *op) {
  std::optional<Operations> found = operationsOf(*op);
  if (!found)
    return;
  for (Operations &known : operations) {
    Operations one = known;
    one.count = found->count;
    if (one == *found) {
      known.count += found->count;
      return;
    }
  }
  operations.push_back(*found);
}

void ftuner::collectOperations(Operation &op, std::vector<Operations> &result) {
  op.walk([&](Operation *inner) { addOperation(result, inner); });
}

std::vector<Operations> ftuner::collectOperations(Block &body) {
  std::vector<Operations> result;
  for (Operation &op : body)
    collectOperations(op, result);
  return result;
}

bool ftuner::isInvariant(Operation &op, function_ref<bool(Value)> isKnown) {
  return op.getNumRegions() == 0 && isPure(&op) && !isa<ukernel::IndexOp>(op) &&
         llvm::all_of(op.getOperands(), isKnown);
}

/// Returns the prologue of a factor; an empty one if it has only exact casts.
static std::vector<Operations> prologueOf(const SumOfProducts &parts,
                                          unsigned factor) {
  std::vector<Operations> result;
  if (parts.isComputed(factor))
    for (Operation *op : parts.prologues[factor])
      addOperation(result, op);
  return result;
}

/// The type in which units multiply factors of two types: the narrowest that
/// holds the values of both.
static ElementType multipliedType(ElementType lhs, ElementType rhs,
                                  ElementType accumulator) {
  if (isInteger(lhs) && isInteger(rhs) && !isInteger(accumulator))
    return ElementType::F32;
  if (lhs == rhs || (isInteger(rhs) && !isInteger(lhs)))
    return lhs;
  if (isInteger(lhs) && !isInteger(rhs))
    return rhs;
  if (bytesOf(lhs) == bytesOf(rhs))
    return accumulator;
  return bytesOf(lhs) < bytesOf(rhs) ? rhs : lhs;
}

std::pair<Merge, Identity> ftuner::mergeOf(Block &combiner) {
  Value next = combiner.getTerminator()->getOperand(0);
  Operation *last = next.getDefiningOp();
  BlockArgument accumulator = combiner.getArguments().back();
  if (!last || !accumulator.hasOneUse() ||
      *accumulator.getUsers().begin() != last)
    return {Merge::Other, Identity::Zero};
  return TypeSwitch<Operation *, std::pair<Merge, Identity>>(last)
      .Case<arith::AddFOp, arith::AddIOp>(
          [](auto) { return std::pair(Merge::Sum, Identity::Zero); })
      .Case<arith::MulFOp, arith::MulIOp>(
          [](auto) { return std::pair(Merge::Product, Identity::One); })
      .Case<arith::MaximumFOp, arith::MaxNumFOp, arith::MaxSIOp,
            arith::MaxUIOp>(
          [](auto) { return std::pair(Merge::Maximum, Identity::Lowest); })
      .Case<arith::MinimumFOp, arith::MinNumFOp, arith::MinSIOp,
            arith::MinUIOp>(
          [](auto) { return std::pair(Merge::Minimum, Identity::Highest); })
      .Default(
          [](Operation *) { return std::pair(Merge::Other, Identity::Zero); });
}

void ftuner::setComputations(
    Workload &workload, AxisSet reduce, const ComputationBodies &bodies,
    llvm::function_ref<void(ContractionParts &)> change) {
  Block &combiner = *bodies.combiner;
  ContractionParts parts;
  parts.accumulatorType = toElementType(
      bodies.accumulator ? bodies.accumulator
                         : combiner.getArguments().back().getType());
  if (bodies.epilogue)
    parts.epilogue = collectOperations(*bodies.epilogue);
  std::optional<SumOfProducts> product = matchSumOfProducts(combiner);
  if (product) {
    // Units multiply values of the factors' type and add to accumulators of
    // another one; factors need no separate cast.
    parts.multipliedType =
        multipliedType(toElementType(product->narrowFactor(0).getType()),
                       toElementType(product->narrowFactor(1).getType()),
                       parts.accumulatorType);
    for (unsigned factor : {0, 1})
      parts.prologues[factor] = prologueOf(*product, factor);
  }
  if (change)
    change(parts);
  if (product && workload.find(OperandRole::Lhs) &&
      workload.find(OperandRole::Rhs) && reduce == AxisSet{matmulAxes.k}) {
    setContraction(workload, parts);
    return;
  }
  State state;
  auto [merge, identity] = mergeOf(combiner);
  state.merge = merge;
  state.accumulators.front().type = parts.accumulatorType;
  state.accumulators.front().identity = identity;
  std::vector<Operations> operations = collectOperations(combiner);
  if (product)
    operations = {{OperationKind::MultiplyAdd, parts.multipliedType,
                   parts.accumulatorType}};
  setReduction(workload, reduce, std::move(operations), std::move(state),
               parts.epilogue);
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

void ftuner::describeReduction(
    ukernel::ReductionOpInterface op, Workload &workload,
    llvm::function_ref<void(ContractionParts &)> change) {
  AxisSet reduce;
  for (unsigned axis : llvm::seq(op.getNumAxes()))
    if (op.isReduceAxis(axis))
      reduce.insert(axis);
  setComputations(workload, reduce,
                  {&op.getCombiner().front(),
                   op.hasEpilogue() ? &op.getEpilogue().front() : nullptr},
                  change);
}

void ftuner::ukernel::detail::describeReduction(OperatorOpInterface op,
                                                Workload &workload) {
  ftuner::describeReduction(cast<ReductionOpInterface>(op.getOperation()),
                            workload);
}

LogicalResult ftuner::verifyComputations(ukernel::OperatorOpInterface op) {
  Workload workload;
  for (auto [axis, extent] : llvm::enumerate(op.getStaticExtents()))
    workload.axes.push_back(
        {op.getAxisName(axis).str(),
         ShapedType::isDynamic(extent)
             ? SizeRange()
             : SizeRange::fixed(std::max<int64_t>(extent, 1))});
  addLoops(op.getFusedLoops(), ukernel::staticSizesOfDims(op), workload);
  addOperands(op, workload);
  op.describe(workload);
  if (llvm::Error error = workload.check())
    return op->emitOpError(llvm::toString(std::move(error)));
  return success();
}
