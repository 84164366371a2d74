//===- SizeTracer.cpp - Formulas of sizes on the host ---------------------===//
#include "SizeTracer.h"
#include "FTuner/Analysis/IntegerArithmetic.h"
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/HostAbi/HostAbi.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ftuner;

SizeTracer::SizeTracer(func::FuncOp func, FunctionWork &work,
                       ArrayRef<double> numbers)
    : func(func), abiType(getAbiType(func)), context(func.getContext()) {
  nameSizes(work, numbers);
  for (const Axis &axis : work.sizes) {
    lowest.push_back(axis.range.min);
    highest.push_back(axis.range.max);
  }
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

std::pair<std::optional<int64_t>, std::optional<int64_t>>
SizeTracer::boundsOf(AffineExpr formula) {
  auto bound = [&](bool isUpper) {
    return getBoundForAffineExpr(formula, /*numDims=*/0, lowest.size(), lowest,
                                 highest, isUpper);
  };
  return {bound(false), bound(true)};
}

AffineExpr SizeTracer::chooseBetween(AffineExpr lhs, AffineExpr rhs,
                                     bool isGreater) {
  if (lhs == rhs)
    return lhs;
  auto [low, high] = boundsOf(lhs - rhs);
  if (low && *low >= 0)
    return isGreater ? lhs : rhs;
  if (high && *high <= 0)
    return isGreater ? rhs : lhs;
  return {};
}

AffineExpr SizeTracer::traceComparison(arith::CmpIOp op) {
  AffineExpr lhs = trace(op.getLhs()), rhs = trace(op.getRhs());
  if (!lhs || !rhs)
    return {};
  auto [low, high] = boundsOf(lhs - rhs);
  auto isAlways = [&](bool holds, bool fails) {
    return holds || fails ? getAffineConstantExpr(holds, context)
                          : AffineExpr();
  };
  bool isLess = high && *high < 0, isAtMost = high && *high <= 0,
       isGreater = low && *low > 0, isAtLeast = low && *low >= 0;
  switch (op.getPredicate()) {
  case arith::CmpIPredicate::eq:
    return isAlways(isAtMost && isAtLeast, isLess || isGreater);
  case arith::CmpIPredicate::ne:
    return isAlways(isLess || isGreater, isAtMost && isAtLeast);
  case arith::CmpIPredicate::slt:
    return isAlways(isLess, isAtLeast);
  case arith::CmpIPredicate::sle:
    return isAlways(isAtMost, isGreater);
  case arith::CmpIPredicate::sgt:
    return isAlways(isGreater, isAtMost);
  case arith::CmpIPredicate::sge:
    return isAlways(isAtLeast, isLess);
  default: // Sizes beyond the ranges may be negative before they are clamped.
    return {};
  }
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
  if (isa<arith::MaxSIOp, arith::MinSIOp>(op))
    return chooseBetween(lhs, rhs, isa<arith::MaxSIOp>(op));
  return isa<arith::MaxUIOp, arith::MinUIOp>(op) && lhs == rhs ? lhs
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
  if (auto comparison = dyn_cast<arith::CmpIOp>(op))
    return traceComparison(comparison);
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
