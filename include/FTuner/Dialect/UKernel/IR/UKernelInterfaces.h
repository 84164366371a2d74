//===- UKernelInterfaces.h - What every operator says -----------*- C++ -*-===//
//
// `OperatorOpInterface`, which passes ask in place of a certain operator, and
// what its implementations share.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_DIALECT_UKERNEL_IR_UKERNELINTERFACES_H
#define FTUNER_DIALECT_UKERNEL_IR_UKERNELINTERFACES_H

#include "FTuner/Workload/Workload.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/IndexingMapOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/Sequence.h"

namespace ftuner::ukernel {
class OperatorOpInterface;
class ReductionOpInterface;

/// One accumulator of a slice: the type of its elements, and a map from the
/// operator's axes to its dimensions, one axis each.
struct SliceState {
  mlir::Type elementType;
  mlir::AffineMap map;
};

/// One of the loops of a fused axis, and its name in small letters: "p".
struct FusedLoop {
  unsigned axis;
  std::string name;
};

// The interfaces that an operator inherits name these without a namespace.
using mlir::AffineMap;
using mlir::ArrayAttr;
using mlir::BaseMemRefType;
using mlir::LogicalResult;
using mlir::OpOperand;
using mlir::SmallVector;
using mlir::TensorType;
using mlir::Value;

namespace detail {
llvm::SmallVector<int64_t, 4> getStaticExtents(OperatorOpInterface op);
std::pair<mlir::Value, int64_t> getExtentSource(OperatorOpInterface op,
                                                unsigned dim);
llvm::SmallVector<unsigned, 3> getDimsOfAxis(OperatorOpInterface op,
                                             unsigned axis);
std::string getOperandName(OperatorOpInterface op, unsigned number);
mlir::Operation *getCombiningOp(ReductionOpInterface op);
mlir::Type getAccumulatorType(ReductionOpInterface op);
mlir::OpOperand &getStartOperand(ReductionOpInterface op);
// Defaults of an operator, for those with one reduction.
void describeReduction(OperatorOpInterface op, Workload &workload);
bool startsFromOutput(OperatorOpInterface op);
llvm::SmallVector<SliceState> getSliceStates(OperatorOpInterface op);
mlir::Operation *cloneIntoTile(OperatorOpInterface op, mlir::OpBuilder &builder,
                               mlir::ValueRange operands,
                               llvm::ArrayRef<int64_t> tile);
mlir::Operation *buildSumOfSlices(OperatorOpInterface op,
                                  mlir::OpBuilder &builder, int64_t numSlices,
                                  mlir::ValueRange states);
mlir::LogicalResult verifyOperator(OperatorOpInterface op);
mlir::LogicalResult verifyReduction(ReductionOpInterface op);
} // namespace detail
} // namespace ftuner::ukernel

#include "FTuner/Dialect/UKernel/IR/UKernelInterfaces.h.inc"

namespace ftuner::ukernel {

/// Says what is wrong with a region of an operator, called `name`, that should
/// take scalars of these types and yield some of types `results`.
mlir::LogicalResult verifyScalarRegion(OperatorOpInterface op,
                                       mlir::Region &region,
                                       llvm::StringRef name,
                                       llvm::ArrayRef<mlir::Type> arguments,
                                       llvm::ArrayRef<mlir::Type> results);
/// Says what is wrong with the plan that the operator names, if it names one:
/// SymbolUserOpInterface of an operator.
mlir::LogicalResult verifyPlanUse(OperatorOpInterface op,
                                  mlir::SymbolTableCollection &symbolTable);
/// The one operation of a scalar body that updates the accumulator, its last
/// argument; null if there are several.
mlir::Operation *findCombiningOp(mlir::Block &body);
/// The shapes of results are those of outputs: ReifyRankedShapedTypeOpInterface
/// of an operator.
mlir::LogicalResult
reifyOutputShapes(OperatorOpInterface op, mlir::OpBuilder &builder,
                  mlir::ReifiedRankedShapedTypeDims &shapes);
/// What the operator reads and writes: MemoryEffectsOpInterface of an operator.
void getOperatorEffects(OperatorOpInterface op,
                        llvm::SmallVectorImpl<mlir::SideEffects::EffectInstance<
                            mlir::MemoryEffects::Effect>> &effects);

/// "(m, n, k, b0)".
std::string axisList(OperatorOpInterface op);

/// Static extents of all dimensions of the maps, of fused axes those of their
/// loops' product; ShapedType::kDynamic where unknown.
llvm::SmallVector<int64_t> staticSizesOfDims(OperatorOpInterface op);

/// The dimensions of an operand, together where they are all loops of one fused
/// axis in their order: the operand as the core and kernels see it has one
/// dimension for each group.
llvm::SmallVector<mlir::ReassociationIndices>
groupDimensions(OperatorOpInterface op, unsigned number);
/// A map from the axes to those groups; null if some position is no axis alone
/// but a window or a loop.
mlir::AffineMap axisMapOf(OperatorOpInterface op, unsigned number);

/// The number of elements that a box of `sizes` points, one size for each
/// dimension of the maps and at least 1, reaches over along a dimension with
/// this position. For a position that is one axis alone, its size.
mlir::AffineExpr reachOf(mlir::AffineExpr position,
                         llvm::ArrayRef<mlir::AffineExpr> sizes);

} // namespace ftuner::ukernel

#endif // FTUNER_DIALECT_UKERNEL_IR_UKERNELINTERFACES_H
