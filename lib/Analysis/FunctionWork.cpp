//===- FunctionWork.cpp - What all launches of a function do --------------===//
#include "FTuner/Analysis/FunctionWork.h"
#include "FTuner/Analysis/IntegerArithmetic.h"
#include "FTuner/Analysis/LaunchOrder.h"
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Dialect/UKernel/IR/Images.h"
#include "FTuner/HostAbi/HostAbi.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/SetVector.h"
#include <cmath>

using namespace mlir;
using namespace ftuner;

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

namespace {
/// Follows sizes on the host back to the sizes of a function's arguments.
class SizeTracer {
public:
  /// With numbers for `sizeNames`, formulas are of these.
  SizeTracer(func::FuncOp func, FunctionWork &work,
             ArrayRef<double> numbers = {});

  /// Returns the formula of an index; null if it does not follow from the
  /// function's sizes.
  AffineExpr trace(Value value);
  AffineExpr trace(OpFoldResult value);

private:
  void nameSizes(FunctionWork &work, ArrayRef<double> numbers);
  /// The size of a dimension of an argument, or of a result's buffer.
  AffineExpr argumentDim(unsigned argument, int64_t dim);
  AffineExpr dimOf(Value memref, int64_t dim);
  AffineExpr strideOf(Value memref, int64_t dim);
  AffineExpr traceBinary(Operation *op);
  AffineExpr compute(Value value);

  func::FuncOp func;
  FunctionType abiType;
  MLIRContext *context;
  /// Symbols of dimensions; of scalars, with dimension -1.
  DenseMap<std::pair<unsigned, int64_t>, AffineExpr> symbols;
  /// What is known to be equal: the arguments of the function of result sizes.
  DenseMap<Value, AffineExpr> known;
  /// The sizes of the results, one after the other.
  SmallVector<Value> resultSizes;
};
} // namespace

SizeTracer::SizeTracer(func::FuncOp func, FunctionWork &work,
                       ArrayRef<double> numbers)
    : func(func), abiType(getAbiType(func)), context(func.getContext()) {
  nameSizes(work, numbers);
  auto name = func->getAttrOfType<FlatSymbolRefAttr>(kResultSizesAttrName);
  auto sizes =
      name ? SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(func, name)
           : func::FuncOp();
  if (!sizes || sizes.isExternal())
    return;
  unsigned next = 0;
  for (bool isTensor : {true, false})
    for (auto [index, type] : llvm::enumerate(abiType.getInputs())) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (isTensor != (tensor != nullptr))
        continue;
      if (!tensor)
        known[sizes.getArgument(next++)] = symbols.lookup({index, -1});
      for (int64_t dim = 0; tensor && dim < tensor.getRank(); ++dim)
        if (tensor.isDynamicDim(dim))
          known[sizes.getArgument(next++)] = symbols.lookup({index, dim});
    }
  resultSizes =
      llvm::to_vector(sizes.getBody().back().getTerminator()->getOperands());
}

/// Calls back for each dynamic dimension of an argument, and with dimension -1
/// for each whole number, with its name.
static void forEachArgumentSize(
    func::FuncOp func, FunctionType type,
    llvm::function_ref<void(unsigned argument, int64_t dim, std::string name)>
        visit) {
  SmallVector<std::string> words = argumentWords(func);
  for (auto [index, input] : llvm::enumerate(type.getInputs())) {
    const std::string &place = words[index];
    auto tensor = dyn_cast<RankedTensorType>(input);
    if (!tensor) {
      if (input.isIntOrIndex())
        visit(index, -1, place);
      continue;
    }
    auto shape = func.getArgAttrOfType<ArrayAttr>(
        index, ukernel::UKernelDialect::kShapeAttrName);
    for (int64_t dim = 0; dim < tensor.getRank(); ++dim) {
      if (!tensor.isDynamicDim(dim))
        continue;
      auto symbol = shape ? dyn_cast<StringAttr>(shape[dim]) : StringAttr();
      visit(index, dim,
            symbol ? symbol.str() : place + "_dim" + std::to_string(dim));
    }
  }
}

std::vector<std::string> ftuner::argumentSizeNames(func::FuncOp func,
                                                   FunctionType type) {
  std::vector<std::string> names;
  forEachArgumentSize(func, type, [&](unsigned, int64_t, std::string name) {
    names.push_back(std::move(name));
  });
  return names;
}

/// One symbol for each name, and for each size without a name.
void SizeTracer::nameSizes(FunctionWork &work, ArrayRef<double> numbers) {
  auto ranges =
      func->getParentOfType<ModuleOp>()->getAttrOfType<DictionaryAttr>(
          ukernel::UKernelDialect::kSymbolsAttrName);
  auto add = [&](unsigned argument, int64_t dim, std::string name) {
    auto found = llvm::find(work.sizeNames, name);
    size_t position = found - work.sizeNames.begin();
    if (found == work.sizeNames.end()) {
      Axis axis{name, {}};
      if (auto range = ranges ? ranges.getAs<ukernel::RangeAttr>(name)
                              : ukernel::RangeAttr()) {
        axis.range = toSizeRange(range);
        axis.weights = toWeights(range);
      }
      work.sizeNames.push_back(std::move(name));
      work.sizes.push_back(std::move(axis));
    }
    symbols[{argument, dim}] =
        numbers.empty() ? getAffineSymbolExpr(position, context)
                        : getAffineConstantExpr(
                              static_cast<int64_t>(numbers[position]), context);
  };
  forEachArgumentSize(func, abiType, add);
}

AffineExpr SizeTracer::argumentDim(unsigned argument, int64_t dim) {
  unsigned numInputs = abiType.getNumInputs();
  if (argument < numInputs)
    return symbols.lookup({argument, dim});
  if (argument - numInputs >= abiType.getNumResults())
    return {};
  unsigned position = dim;
  for (unsigned result = 0; result < argument - numInputs; ++result)
    position += cast<RankedTensorType>(abiType.getResult(result)).getRank();
  return position < resultSizes.size() ? trace(resultSizes[position])
                                       : AffineExpr();
}

AffineExpr SizeTracer::dimOf(Value memref, int64_t dim) {
  auto type = dyn_cast<MemRefType>(memref.getType());
  if (!type || dim < 0 || dim >= type.getRank())
    return {};
  if (!type.isDynamicDim(dim))
    return getAffineConstantExpr(type.getDimSize(dim), context);
  if (auto argument = dyn_cast<BlockArgument>(memref))
    return argument.getOwner() == &func.getBody().front()
               ? argumentDim(argument.getArgNumber(), dim)
               : AffineExpr();
  Operation *op = memref.getDefiningOp();
  if (auto castOp = dyn_cast<memref::CastOp>(op))
    return dimOf(castOp.getSource(), dim);
  if (auto view = dyn_cast<memref::ViewOp>(op))
    return trace(view.getSizes()[type.getDynamicDimIndex(dim)]);
  if (auto alloc = dyn_cast<memref::AllocOp>(op))
    return trace(alloc.getMixedSizes()[dim]);
  if (auto reinterpret = dyn_cast<memref::ReinterpretCastOp>(op))
    return trace(reinterpret.getMixedSizes()[dim]);
  if (auto expand = dyn_cast<memref::ExpandShapeOp>(op))
    return trace(expand.getMixedOutputShape()[dim]);
  if (auto collapse = dyn_cast<memref::CollapseShapeOp>(op)) {
    AffineExpr product = getAffineConstantExpr(1, context);
    ReassociationIndices group = collapse.getReassociationIndices()[dim];
    for (int64_t joined : group) {
      AffineExpr size = dimOf(collapse.getSrc(), joined);
      if (!size)
        return {};
      product = product * size;
    }
    return product;
  }
  if (auto slice = dyn_cast<memref::SubViewOp>(op);
      slice && slice.getDroppedDims().none())
    return trace(slice.getMixedSizes()[dim]);
  if (auto transpose = dyn_cast<memref::TransposeOp>(op))
    return dimOf(transpose.getIn(),
                 cast<AffineDimExpr>(transpose.getPermutation().getResult(dim))
                     .getPosition());
  return {};
}

AffineExpr SizeTracer::strideOf(Value memref, int64_t dim) {
  auto type = dyn_cast<MemRefType>(memref.getType());
  if (!type || dim < 0 || dim >= type.getRank())
    return {};
  SmallVector<int64_t> strides;
  int64_t offset;
  if (succeeded(type.getStridesAndOffset(strides, offset)) &&
      !ShapedType::isDynamic(strides[dim]))
    return getAffineConstantExpr(strides[dim], context);
  if (type.getLayout().isIdentity()) {
    AffineExpr product = getAffineConstantExpr(1, context);
    for (int64_t inner = dim + 1; inner < type.getRank(); ++inner) {
      AffineExpr size = dimOf(memref, inner);
      if (!size)
        return {};
      product = product * size;
    }
    return product;
  }
  if (auto slice = memref.getDefiningOp<memref::SubViewOp>();
      slice && slice.getDroppedDims().none()) {
    AffineExpr outer = strideOf(slice.getSource(), dim),
               step = trace(slice.getMixedStrides()[dim]);
    return outer && step ? outer * step : AffineExpr();
  }
  if (auto transpose = memref.getDefiningOp<memref::TransposeOp>())
    return strideOf(
        transpose.getIn(),
        cast<AffineDimExpr>(transpose.getPermutation().getResult(dim))
            .getPosition());
  return {};
}

AffineExpr SizeTracer::traceBinary(Operation *op) {
  AffineExpr lhs = trace(op->getOperand(0)), rhs = trace(op->getOperand(1));
  if (!lhs || !rhs)
    return {};
  auto left = dyn_cast<AffineConstantExpr>(lhs),
       right = dyn_cast<AffineConstantExpr>(rhs);
  if (left && right) {
    std::optional<int64_t> result =
        foldInteger(op, left.getValue(), right.getValue());
    return result ? getAffineConstantExpr(*result, context) : AffineExpr();
  }
  if (isa<arith::AddIOp>(op))
    return lhs + rhs;
  if (isa<arith::SubIOp>(op))
    return lhs - rhs;
  if (isa<arith::MulIOp>(op))
    return lhs * rhs;
  if (isa<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp>(op))
    return lhs.floorDiv(rhs);
  if (isa<arith::CeilDivUIOp, arith::CeilDivSIOp>(op))
    return lhs.ceilDiv(rhs);
  if (isa<arith::RemUIOp, arith::RemSIOp>(op))
    return lhs % rhs;
  return isa<arith::MaxSIOp, arith::MaxUIOp, arith::MinSIOp, arith::MinUIOp>(
             op) &&
                 lhs == rhs
             ? lhs
             : AffineExpr();
}

AffineExpr SizeTracer::compute(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return getAffineConstantExpr(constant.getSExtValue(), context);
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner() == &func.getBody().front()
               ? symbols.lookup({argument.getArgNumber(), -1})
               : AffineExpr();
  Operation *op = value.getDefiningOp();
  if (auto dim = dyn_cast<memref::DimOp>(op)) {
    std::optional<int64_t> index = dim.getConstantIndex();
    return index ? dimOf(dim.getSource(), *index) : AffineExpr();
  }
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
          arith::ExtUIOp>(op))
    return trace(op->getOperand(0));
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op)) {
    SmallVector<AffineExpr> operands;
    for (Value operand : apply.getMapOperands()) {
      operands.push_back(trace(operand));
      if (!operands.back())
        return {};
    }
    ArrayRef<AffineExpr> all = operands;
    unsigned numDims = apply.getAffineMap().getNumDims();
    return apply.getAffineMap().getResult(0).replaceDimsAndSymbols(
        all.take_front(numDims), all.drop_front(numDims));
  }
  if (auto metadata = dyn_cast<memref::ExtractStridedMetadataOp>(op)) {
    for (auto [dim, stride] : llvm::enumerate(metadata.getStrides()))
      if (stride == value)
        return strideOf(metadata.getSource(), dim);
    for (auto [dim, size] : llvm::enumerate(metadata.getSizes()))
      if (size == value)
        return dimOf(metadata.getSource(), dim);
    return {};
  }
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    auto condition =
        dyn_cast_or_null<AffineConstantExpr>(trace(select.getCondition()));
    return condition ? trace(condition.getValue() != 0 ? select.getTrueValue()
                                                       : select.getFalseValue())
                     : AffineExpr();
  }
  return op->getNumOperands() == 2 && op->getNumResults() == 1 ? traceBinary(op)
                                                               : AffineExpr();
}

AffineExpr SizeTracer::trace(Value value) {
  auto [it, isNew] = known.try_emplace(value, AffineExpr());
  if (!isNew)
    return it->second;
  AffineExpr result = compute(value);
  return known[value] = result;
}

AffineExpr SizeTracer::trace(OpFoldResult value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return getAffineConstantExpr(*constant, context);
  return trace(cast<Value>(value));
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// How often a call runs what is at `op`: the product of the trips of the loops
/// around it; null if one is not known.
static AffineExpr tripsAround(Operation *op, SizeTracer &tracer) {
  AffineExpr trips = getAffineConstantExpr(1, op->getContext());
  for (Operation *parent = op->getParentOp(); !isa<func::FuncOp>(parent);
       parent = parent->getParentOp()) {
    if (auto loop = dyn_cast<scf::ForOp>(parent)) {
      AffineExpr low = tracer.trace(loop.getLowerBound());
      AffineExpr high = tracer.trace(loop.getUpperBound());
      AffineExpr step = tracer.trace(loop.getStep());
      if (!low || !high || !step)
        return {};
      trips = trips * (high - low).ceilDiv(step);
    } else if (isa<LoopLikeOpInterface>(parent)) {
      return {};
    }
  }
  return trips;
}

/// Whether control may come back to the block from itself.
static bool isInCycle(func::FuncOp func, Operation *op) {
  Block *start = func.getBody().findAncestorOpInRegion(*op)->getBlock();
  SmallVector<Block *> worklist(start->getSuccessors());
  llvm::SmallPtrSet<Block *, 8> seen;
  while (!worklist.empty()) {
    Block *block = worklist.pop_back_val();
    if (block == start)
      return true;
    if (seen.insert(block).second)
      llvm::append_range(worklist, block->getSuccessors());
  }
  return false;
}

/// The kernel's work in terms of the launch's sizes; null for a kernel that
/// does not tell.
static DictionaryAttr findWork(ukernel::LaunchOp launch) {
  auto module = launch->getParentOfType<ModuleOp>();
  Operation *kernel = SymbolTable::lookupSymbolIn(
      module, launch.getKernel().getRootReference());
  if (auto unlowered = dyn_cast_or_null<ukernel::KernelOp>(kernel))
    return workOf(unlowered);
  return kernel ? kernel->getAttrOfType<DictionaryAttr>(kWorkAttrName)
                : DictionaryAttr();
}

/// The results of a map at the launch's sizes.
static SmallVector<AffineExpr>
applyTo(AffineMapAttr map, ukernel::LaunchOp launch, SizeTracer &tracer) {
  SmallVector<AffineExpr> sizes, results;
  for (Value size : launch.getSizes())
    sizes.push_back(tracer.trace(size));
  for (AffineExpr result : map.getValue().getResults()) {
    bool isKnown = map.getValue().getNumSymbols() <= sizes.size();
    result.walk([&](AffineExpr inner) {
      if (auto symbol = dyn_cast<AffineSymbolExpr>(inner))
        isKnown = isKnown && sizes[symbol.getPosition()];
    });
    results.push_back(isKnown ? result.replaceSymbols(sizes) : AffineExpr());
  }
  return results;
}

namespace {
/// What the launches of a function do to buffers, by items of its work.
/// Launches that are no item have a place too: others may wait for them.
class LaunchOrderBuilder {
public:
  /// `name` of an item of several launches; empty for one that has one.
  void add(ukernel::LaunchOp launch, StringRef name) {
    size_t place = accesses.size();
    if (!name.empty())
      place = places.try_emplace(name, place).first->second;
    if (place == accesses.size())
      accesses.emplace_back();
    llvm::append_range(accesses[place], accessesOf(launch));
    last = place;
  }
  /// The launch that was added last begins the next item.
  void beginItem() { items.push_back(last); }
  void write(MutableArrayRef<LaunchWork> launches);

private:
  llvm::StringMap<size_t> places;
  std::vector<std::vector<BufferAccess>> accesses;
  /// The place of each item.
  std::vector<size_t> items;
  size_t last = 0;
};
} // namespace

void LaunchOrderBuilder::write(MutableArrayRef<LaunchWork> launches) {
  std::vector<std::vector<size_t>> order = launchOrder(accesses);
  DenseMap<size_t, size_t> itemAt;
  for (auto [item, place] : llvm::enumerate(items))
    itemAt[place] = item;
  for (auto [item, place] : llvm::enumerate(items)) {
    SmallVector<size_t> open(order[place].begin(), order[place].end());
    llvm::SmallSetVector<size_t, 4> after;
    while (!open.empty()) {
      size_t next = open.pop_back_val();
      if (auto known = itemAt.find(next); known != itemAt.end())
        after.insert(known->second);
      else
        open.append(order[next].begin(), order[next].end());
    }
    launches[item].after.assign(after.begin(), after.end());
    llvm::sort(launches[item].after);
  }
}

FunctionWork ftuner::collectWork(func::FuncOp func, ArrayRef<double> sizes) {
  FunctionWork work;
  work.name = func.getName().str();
  SizeTracer tracer(func, work, sizes);
  llvm::StringSet<> sites;
  // Workloads with an alternative that has no slices.
  llvm::StringSet<> whole;
  // Of two images, the exact one is the device's.
  auto isElsewhere = [](ukernel::LaunchOp launch) {
    return !ukernel::imagesAt(launch).exact;
  };
  func.walk([&](ukernel::LaunchOp launch) {
    auto site = launch->getAttrOfType<DictionaryAttr>(kSiteAttrName);
    if (site && !site.contains("slices") && !isElsewhere(launch))
      if (auto name = site.getAs<StringAttr>("name"))
        whole.insert(name.getValue());
  });
  LaunchOrderBuilder order;
  func.walk([&](ukernel::LaunchOp launch) {
    if (isElsewhere(launch))
      return;
    auto site = launch->getAttrOfType<DictionaryAttr>(kSiteAttrName);
    auto textAt = [&](StringRef key) {
      auto text = site ? site.getAs<StringAttr>(key) : StringAttr();
      return text ? text.str() : std::string();
    };
    order.add(launch, textAt("name"));
    DictionaryAttr fields = findWork(launch);
    auto amounts = fields ? fields.getAs<AffineMapAttr>("amounts") : nullptr;
    // What adds slices up is part of the workload's time, and the alternatives
    // without slices tell its work.
    if (amounts && !textAt("slices").empty() &&
        (!fields.contains("axes") || whole.contains(textAt("name"))))
      return;
    if (!amounts || amounts.getValue().getNumResults() != 4 ||
        amounts.getValue().getNumDims() != 0 ||
        (!textAt("name").empty() && !sites.insert(textAt("name")).second))
      return;
    SmallVector<AffineExpr> results = applyTo(amounts, launch, tracer);
    LaunchWork item{textAt("name"),
                    textAt("workload"),
                    textAt("operator"),
                    textAt("location"),
                    results[0],
                    results[1],
                    results[2],
                    results[3],
                    {},
                    {},
                    tripsAround(launch, tracer),
                    {},
                    {}};
    if (isInCycle(func, launch))
      item.launches = {};
    item.kernel = launch.getKernel().getRootReference().str();
    for (Value size : launch.getSizes())
      item.passedSizes.push_back(tracer.trace(size));
    for (Value stride : launch.getStrides())
      item.passedStrides.push_back(tracer.trace(stride));
    if (item.name.empty())
      item.name = item.kernel;
    if (auto extents = fields.getAs<AffineMapAttr>("extents");
        extents && extents.getValue().getNumDims() == 0)
      item.extents = applyTo(extents, launch, tracer);
    if (auto names = fields.getAs<ArrayAttr>("axes"))
      for (auto name : names.getAsRange<StringAttr>())
        item.axisNames.push_back(name.str());
    if (item.isFallback())
      item.blocks = tracer.trace(launch.getBlocks());
    order.beginItem();
    work.launches.push_back(std::move(item));
  });
  order.write(work.launches);
  return work;
}

//===----------------------------------------------------------------------===//
// Formulas
//===----------------------------------------------------------------------===//

std::string ftuner::textOf(AffineExpr formula,
                           llvm::ArrayRef<std::string> sizeNames) {
  if (!formula)
    return "";
  std::string printed, text;
  llvm::raw_string_ostream(printed) << formula;
  // Symbols are printed as s0, s1, …; every other letter is part of a word.
  for (size_t i = 0; i < printed.size(); ++i) {
    bool isSymbol = printed[i] == 's' && i + 1 < printed.size() &&
                    isdigit(printed[i + 1]) &&
                    (i == 0 || !isalnum(printed[i - 1]));
    if (!isSymbol) {
      text += printed[i];
      continue;
    }
    size_t number = 0;
    while (i + 1 < printed.size() && isdigit(printed[i + 1]))
      number = 10 * number + (printed[++i] - '0');
    text += number < sizeNames.size() ? sizeNames[number] : "?";
  }
  return text;
}

static double evaluateExact(AffineExpr formula, ArrayRef<double> sizes) {
  if (auto constant = dyn_cast<AffineConstantExpr>(formula))
    return static_cast<double>(constant.getValue());
  if (auto symbol = dyn_cast<AffineSymbolExpr>(formula))
    return sizes[symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(formula);
  double lhs = evaluateExact(binary.getLHS(), sizes);
  double rhs = evaluateExact(binary.getRHS(), sizes);
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return lhs + rhs;
  case AffineExprKind::Mul:
    return lhs * rhs;
  case AffineExprKind::FloorDiv:
    return rhs == 0 ? 0 : std::floor(lhs / rhs);
  case AffineExprKind::CeilDiv:
    return rhs == 0 ? 0 : std::ceil(lhs / rhs);
  default:
    return rhs == 0 ? 0 : lhs - rhs * std::floor(lhs / rhs);
  }
}

std::optional<double> ftuner::evaluateSigned(AffineExpr formula,
                                             ArrayRef<double> sizes) {
  if (!formula)
    return std::nullopt;
  return evaluateExact(formula, sizes);
}

std::optional<double> ftuner::evaluate(AffineExpr formula,
                                       ArrayRef<double> sizes) {
  std::optional<double> value = evaluateSigned(formula, sizes);
  if (value)
    value = std::max(0.0, *value);
  return value;
}
