//===- UKernelInterfaces.h - Interfaces of operators ------------*- C++ -*-===//
//
// `OperatorOpInterface`, which passes ask instead of a certain operator, and
// functions that its implementations share.
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

/// One of the loops of a fused axis, and its name in small letters: "p". The
/// extent is that of operands' dimensions, unless the operator itself has it.
struct FusedLoop {
  unsigned axis;
  std::string name;
  int64_t extent = mlir::ShapedType::kDynamic;
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

/// Verifies a region of an operator, called `name`: it takes scalars of these
/// types and yields scalars of the types `results`.
mlir::LogicalResult verifyScalarRegion(OperatorOpInterface op,
                                       mlir::Region &region,
                                       llvm::StringRef name,
                                       llvm::ArrayRef<mlir::Type> arguments,
                                       llvm::ArrayRef<mlir::Type> results);
/// Verifies the plan that the operator names, if it names one. Implements
/// SymbolUserOpInterface of an operator.
mlir::LogicalResult verifyPlanUse(OperatorOpInterface op,
                                  mlir::SymbolTableCollection &symbolTable);
/// Returns the one operation of a scalar body that updates the accumulator, the
/// body's last argument; null if there are several.
mlir::Operation *findCombiningOp(mlir::Block &body);
/// Returns the shapes of results, which equal the shapes of outputs. Implements
/// ReifyRankedShapedTypeOpInterface of an operator.
mlir::LogicalResult
reifyOutputShapes(OperatorOpInterface op, mlir::OpBuilder &builder,
                  mlir::ReifiedRankedShapedTypeDims &shapes);
/// Returns the reads and writes of an operator. Implements
/// MemoryEffectsOpInterface of an operator.
void getOperatorEffects(OperatorOpInterface op,
                        llvm::SmallVectorImpl<mlir::SideEffects::EffectInstance<
                            mlir::MemoryEffects::Effect>> &effects);

/// Returns the names of the axes as text: "(m, n, k, b0)".
std::string axisList(OperatorOpInterface op);

/// Returns the static extents of all dimensions of the maps; the extent of a
/// fused axis is the product of its loops. It is ShapedType::kDynamic if
/// unknown.
llvm::SmallVector<int64_t> staticSizesOfDims(OperatorOpInterface op);

/// Returns the numbers of the operands with padded rows
/// (`ukernel.padded_rows`).
llvm::ArrayRef<int64_t> paddedRowsOf(OperatorOpInterface op);
/// Sets them; none removes the attribute.
void setPaddedRows(OperatorOpInterface op, llvm::ArrayRef<int64_t> numbers);

/// Groups the dimensions of an operand: dimensions that are all loops of one
/// fused axis, in order, are one group. The core and kernels see an operand
/// with one dimension for each group.
llvm::SmallVector<mlir::ReassociationIndices>
groupDimensions(OperatorOpInterface op, unsigned number);
/// Groups the results of a map over `numAxes` axes and the loops of fused ones.
/// `isInOnePiece` says of dimensions, by the first one and their number,
/// whether their elements lie so.
llvm::SmallVector<mlir::ReassociationIndices>
groupDimensions(mlir::AffineMap map, unsigned numAxes,
                llvm::ArrayRef<FusedLoop> loops,
                llvm::function_ref<bool(size_t, size_t)> isInOnePiece);
/// Returns the map from the axes to the groups of `groupDimensions`; null if
/// some position is not a plain axis but a window or a loop.
mlir::AffineMap axisMapOf(OperatorOpInterface op, unsigned number);

/// Returns the number of elements that a box of `sizes` points (one size, at
/// least 1, for each dimension of the maps) reaches over along a dimension with
/// this position. If the position is a plain axis, it is the axis's size.
mlir::AffineExpr reachOf(mlir::AffineExpr position,
                         llvm::ArrayRef<mlir::AffineExpr> sizes);

} // namespace ftuner::ukernel

#endif // FTUNER_DIALECT_UKERNEL_IR_UKERNELINTERFACES_H
