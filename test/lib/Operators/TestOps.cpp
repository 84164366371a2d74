//===- TestOps.cpp - Operators for tests ----------------------------------===//
#include "TestOps.h"

#include "FTuner/Dialect/UKernel/IR/OperatorBufferization.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace ftuner;
using namespace ftuner::test;
using ukernel::OperatorOpInterface;
using ukernel::ReductionOpInterface;

#include "TestDialect.cpp.inc"

#define GET_OP_CLASSES
#include "TestOps.cpp.inc"

void TestDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "TestOps.cpp.inc"
      >();
  declarePromisedInterfaces<bufferization::BufferizableOpInterface, RowSumOp,
                            ConvOp, RowsOp, ConvolutionOp>();
}

void ftuner::test::registerTestDialect(DialectRegistry &registry) {
  registry.insert<TestDialect>();
  registry.addExtension(+[](MLIRContext *context, TestDialect *) {
    RowSumOp::attachInterface<ukernel::OperatorBufferization<RowSumOp>>(
        *context);
    ConvOp::attachInterface<ukernel::OperatorBufferization<ConvOp>>(*context);
    RowsOp::attachInterface<ukernel::OperatorBufferization<RowsOp>>(*context);
    ConvolutionOp::attachInterface<
        ukernel::OperatorBufferization<ConvolutionOp>>(*context);
  });
}

SmallVector<Value> ftuner::test::inlineRegion(OpBuilder &b, Region &region,
                                              ValueRange arguments) {
  Block &body = region.front();
  IRMapping mapping;
  mapping.map(body.getArguments(), arguments);
  for (Operation &operation : body.without_terminator())
    b.clone(operation, mapping);
  return llvm::map_to_vector(
      body.getTerminator()->getOperands(),
      [&](Value value) { return mapping.lookupOrDefault(value); });
}

SmallVector<Value> ftuner::test::indicesAt(ImplicitLocOpBuilder &b,
                                           OperatorOpInterface op,
                                           unsigned number,
                                           ArrayRef<Value> position) {
  Value zero = arith::ConstantIndexOp::create(b, 0);
  auto axes = llvm::map_to_vector(
      position, [&](Value index) { return index ? index : zero; });
  SmallVector<Value> indices;
  for (AffineExpr expr : op.getMapOfOperand(number).getResults()) {
    auto axis = dyn_cast<AffineDimExpr>(expr);
    if (!axis || position[axis.getPosition()])
      indices.push_back(
          affine::expandAffineExpr(b, b.getLoc(), expr, axes, ValueRange()));
  }
  return indices;
}

/// Elements of the inputs and the accumulator in, the next accumulator out.
static LogicalResult verifyCombiner(ReductionOpInterface op) {
  SmallVector<Type> arguments;
  for (OpOperand &operand : op->getOpOperands())
    if (op.isInput(operand.getOperandNumber()))
      arguments.push_back(getElementTypeOrSelf(operand.get().getType()));
  arguments.push_back(op.getAccumulatorType());
  return ukernel::verifyScalarRegion(op, op.getCombiner(), "combiner",
                                     arguments, op.getAccumulatorType());
}

/// Space axes are those of the output's map. Behind them it has the loops of
/// fused ones.
static SmallVector<utils::IteratorType>
iteratorTypes(OperatorOpInterface op, ArrayRef<ukernel::FusedLoop> loops = {}) {
  AffineMap output = op.getIndexingMapsArray().back();
  size_t numAxes =
      output.getNumDims() - std::min<size_t>(loops.size(), output.getNumDims());
  auto isSpace = [&](unsigned axis) {
    if (output.isFunctionOfDim(axis))
      return true;
    for (auto [number, loop] : llvm::enumerate(loops))
      if (loop.axis == axis && numAxes + number < output.getNumDims() &&
          output.isFunctionOfDim(numAxes + number))
        return true;
    return false;
  };
  return llvm::map_to_vector(
      llvm::seq<unsigned>(0, numAxes), [&](unsigned axis) {
        return isSpace(axis) ? utils::IteratorType::parallel
                             : utils::IteratorType::reduction;
      });
}

static StringRef axisName(OperatorOpInterface op, unsigned axis) {
  static constexpr llvm::StringLiteral space[] = {"m", "n", "b0", "b1"},
                                       reduce[] = {"k", "l"};
  SmallVector<utils::IteratorType> types = op.getLoopIteratorTypes();
  unsigned number = llvm::count(ArrayRef(types).take_front(axis), types[axis]);
  return types[axis] == utils::IteratorType::parallel ? space[number]
                                                      : reduce[number];
}

using Effects =
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

//===----------------------------------------------------------------------===//
// RowSumOp
//===----------------------------------------------------------------------===//

OperandRole RowSumOp::getOperandRole(unsigned number) {
  if (number == 0)
    return OperandRole::Input;
  return number + 1 == (*this)->getNumOperands() ? OperandRole::Output
                                                 : OperandRole::Init;
}

ArrayAttr RowSumOp::getIndexingMaps() {
  AffineExpr m, k;
  bindDims(getContext(), m, k);
  auto map = [&](ArrayRef<AffineExpr> results) {
    return AffineMap::get(2, 0, results, getContext());
  };
  SmallVector<AffineMap> maps = {map({m, k})};
  if (getInit())
    maps.push_back(map({}));
  maps.push_back(map({m}));
  return Builder(getContext()).getAffineMapArrayAttr(maps);
}

SmallVector<utils::IteratorType> RowSumOp::getLoopIteratorTypes() {
  return iteratorTypes(*this);
}
StringRef RowSumOp::getAxisName(unsigned axis) { return axisName(*this, axis); }
LogicalResult RowSumOp::verifyRegions() { return verifyCombiner(*this); }
LogicalResult RowSumOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return ukernel::verifyPlanUse(*this, symbols);
}
void RowSumOp::getEffects(Effects &effects) {
  ukernel::getOperatorEffects(*this, effects);
}
LogicalResult RowSumOp::reifyResultShapes(OpBuilder &builder,
                                          ReifiedRankedShapedTypeDims &shapes) {
  return ukernel::reifyOutputShapes(*this, builder, shapes);
}

//===----------------------------------------------------------------------===//
// ConvOp
//===----------------------------------------------------------------------===//

OperandRole ConvOp::getOperandRole(unsigned number) {
  return number < 2 ? OperandRole::Input : OperandRole::Output;
}

SmallVector<utils::IteratorType> ConvOp::getLoopIteratorTypes() {
  return iteratorTypes(*this, getFusedLoops());
}
SmallVector<ukernel::FusedLoop> ConvOp::getFusedLoops() {
  SmallVector<ukernel::FusedLoop> loops;
  for (int64_t axis : getFused().value_or(ArrayRef<int64_t>()))
    loops.push_back(
        {static_cast<unsigned>(axis), "p" + std::to_string(loops.size())});
  return loops;
}
StringRef ConvOp::getAxisName(unsigned axis) { return axisName(*this, axis); }
LogicalResult ConvOp::verifyRegions() { return verifyCombiner(*this); }
LogicalResult ConvOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return ukernel::verifyPlanUse(*this, symbols);
}
void ConvOp::getEffects(Effects &effects) {
  ukernel::getOperatorEffects(*this, effects);
}
LogicalResult ConvOp::reifyResultShapes(OpBuilder &builder,
                                        ReifiedRankedShapedTypeDims &shapes) {
  return ukernel::reifyOutputShapes(*this, builder, shapes);
}
