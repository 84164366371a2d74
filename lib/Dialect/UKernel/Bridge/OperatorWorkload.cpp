//===- OperatorWorkload.cpp - Operators as the core sees them -------------===//
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"

#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Dialect/UKernel/Utils/Roundings.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Workload/Contraction.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/CastInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ftuner;

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

/// The sizes of the range that are at least 1; size 1 if there is none.
static SizeRange withoutZero(SizeRange range) {
  if (range.min >= 1)
    return range;
  if (range.max && *range.max < range.step)
    return SizeRange::fixed(1);
  return {range.step, range.max, range.step};
}

static Axis makeAxis(StringRef name, int64_t extent, ukernel::RangeAttr range) {
  Axis axis{name.str(), {}};
  if (ShapedType::isStatic(extent)) {
    axis.range = SizeRange::fixed(std::max<int64_t>(extent, 1));
    return axis;
  }
  if (!range)
    return axis;
  axis.range = withoutZero(toSizeRange(range));
  double sum = 0;
  for (const SizeWeight &entry : toWeights(range))
    if (axis.range.contains(entry.size)) {
      axis.weights.push_back(entry);
      sum += entry.weight;
    }
  if (!(sum > 0))
    axis.weights.clear();
  return axis;
}

/// Reads `ukernel.extents` into the axes; the dialect has verified it.
static void readExtents(ukernel::OperatorOpInterface op, Workload &workload) {
  auto extents =
      op->getAttrOfType<ArrayAttr>(ukernel::UKernelDialect::kExtentsAttrName);
  if (!extents)
    return;
  for (auto [axis, entry] : llvm::zip_equal(workload.axes, extents)) {
    auto product = dyn_cast<ArrayAttr>(entry);
    if (!product || !axis.isDynamic())
      continue;
    axis.factor = cast<IntegerAttr>(product[0]).getValue().getSExtValue();
    for (Attribute symbol : product.getValue().drop_front())
      axis.symbols.push_back(cast<StringAttr>(symbol).str());
  }
}

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

//===----------------------------------------------------------------------===//
// Computation
//===----------------------------------------------------------------------===//

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
  if (isa<math::FmaOp>(op))
    result.kind = OperationKind::MultiplyAdd;
  else if (isa<CastOpInterface, arith::CmpFOp, arith::CmpIOp, arith::SelectOp>(
               op))
    result.kind = OperationKind::Other;
  else if (isa<math::MathDialect>(op.getDialect()) ||
           isa<arith::DivFOp, arith::RemFOp>(op))
    result.kind = OperationKind::Special;
  else
    result.kind = OperationKind::Arithmetic;
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

std::vector<Operations> ftuner::collectOperations(Block &body) {
  std::vector<Operations> result;
  body.walk([&](Operation *op) { addOperation(result, op); });
  return result;
}

/// What becomes of a factor, but for exact casts alone.
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

/// How a body merges two parts, and what an empty one holds: by the one
/// operation that takes the accumulator and makes the next one.
static std::pair<Merge, Identity> mergeOf(Block &combiner) {
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
    // Units multiply what they are given and add to what they hold; factors
    // need no cast of their own.
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

std::string ftuner::axisNameOf(ukernel::OperatorOpInterface op, unsigned axis) {
  return op.getAxisName(axis).upper();
}

Workload ftuner::toWorkload(ukernel::OperatorOpInterface op) {
  Workload workload;
  if (auto function = op->getParentOfType<FunctionOpInterface>())
    workload.name = function.getName().str();
  ArrayAttr ranges = op.getRangesAttr();
  SmallVector<int64_t, 4> extents = op.getStaticExtents();
  AxisSet reduce;
  for (auto [axis, extent] : llvm::enumerate(extents)) {
    if (op.isReduceAxis(axis))
      reduce.insert(axis);
    workload.axes.push_back(
        makeAxis(axisNameOf(op, axis), extent,
                 ranges ? cast<ukernel::RangeAttr>(ranges[axis])
                        : ukernel::RangeAttr()));
  }
  for (OpOperand &operand : op->getOpOperands())
    workload.operands.push_back(toOperand(
        op.getOperandRole(operand.getOperandNumber()), operand.get().getType(),
        op.getMatchingIndexingMap(&operand)));
  readExtents(op, workload);
  auto product = dyn_cast<ukernel::WorkloadOp>(op.getOperation());
  if (product && product.getPacked())
    workload.operands[product.getRhsMutable().getOperandNumber()].isPacked =
        true;
  setComputations(workload, reduce,
                  {&op.getCombiner().front(),
                   op.hasEpilogue() ? &op.getEpilogue().front() : nullptr},
                  [&](ContractionParts &parts) {
                    if (!product || !product.getPrecision() ||
                        parts.multipliedType != ElementType::F32)
                      return;
                    parts.multipliedType =
                        toElementType(*product.getPrecision());
                    parts.truncatesFactors = product.getTruncated();
                  });
  return workload;
}

Workload ftuner::toUnrangedWorkload(ukernel::OperatorOpInterface op) {
  Workload workload = toWorkload(op);
  for (auto [axis, extent] :
       llvm::zip_equal(workload.axes, op.getStaticExtents()))
    if (ShapedType::isDynamic(extent))
      axis.range = {0, std::nullopt};
  return workload;
}

bool ftuner::hasVectorEpilogue(ukernel::OperatorOpInterface op) {
  return hasVectorEpilogue(toUnrangedWorkload(op));
}

//===----------------------------------------------------------------------===//
// Support
//===----------------------------------------------------------------------===//

FailureOr<PathSupport> PathSupport::of(ModuleOp module) {
  PathSupport support;
  if (module->hasAttr(ukernel::UKernelDialect::kDeviceAttrName)) {
    FailureOr<DeviceSpec> device = deviceOf(module);
    if (failed(device))
      return failure();
    support.devices.push_back(std::move(*device));
    return support;
  }
  for (const std::string &name : builtinDeviceNames()) {
    llvm::Expected<DeviceSpec> device = loadDeviceSpec(name);
    if (!device)
      return module->emitOpError() << llvm::toString(device.takeError());
    support.devices.push_back(std::move(*device));
  }
  return support;
}

void PathSupport::add(ArrayRef<const CodegenModel *> others) {
  for (const CodegenModel *path : others)
    if (!llvm::is_contained(paths, path))
      paths.push_back(path);
}

std::vector<StringRef> PathSupport::pathsFor(const Workload &workload) const {
  std::vector<StringRef> names;
  for (const CodegenModel *path : paths)
    for (const DeviceSpec &device : devices) {
      llvm::Error error = path->supports(workload, device);
      bool isSupported = !error;
      llvm::consumeError(std::move(error));
      if (!isSupported)
        continue;
      names.push_back(path->name());
      break;
    }
  return names;
}

llvm::Error PathSupport::check(const Workload &workload) const {
  std::vector<std::string> reasons;
  for (const CodegenModel *path : paths) {
    std::string reason;
    for (const DeviceSpec &device : devices) {
      llvm::Error error = path->supports(workload, device);
      if (!error)
        return error;
      std::string ofDevice = llvm::toString(std::move(error));
      // Those of other devices say little more.
      if (reason.empty())
        reason = std::move(ofDevice);
    }
    reasons.push_back(std::move(reason));
  }
  return llvm::createStringError(llvm::join(reasons, "; "));
}
