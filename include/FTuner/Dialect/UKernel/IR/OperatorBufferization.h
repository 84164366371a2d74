//===- OperatorBufferization.h - Tensors to memrefs -------------*- C++ -*-===//
//
// Bufferization of any operator: a dialect attaches it to its op by
//
//   MyOp::attachInterface<ftuner::ukernel::OperatorBufferization<MyOp>>(context)
//
// An operator writes its outputs and reads everything else; it reads an output
// only where no init is given. init and extras are read once, at the point that
// is written, so one that equals the output in value and map may share its
// buffer. Inputs are read at many points and may not, except those of a
// `ukernel.pointwise`.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_DIALECT_UKERNEL_IR_OPERATORBUFFERIZATION_H
#define FTUNER_DIALECT_UKERNEL_IR_OPERATORBUFFERIZATION_H

#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"

namespace ftuner::ukernel {

namespace detail {
/// Replaces an operator on tensors by the same on memrefs.
mlir::LogicalResult
bufferizeOperator(OperatorOpInterface op, mlir::RewriterBase &rewriter,
                  const mlir::bufferization::BufferizationOptions &options,
                  mlir::bufferization::BufferizationState &state);
} // namespace detail

template <typename ConcreteOp>
struct OperatorBufferization
    : public mlir::bufferization::DstBufferizableOpInterfaceExternalModel<
          OperatorBufferization<ConcreteOp>, ConcreteOp> {
  bool
  bufferizesToMemoryRead(mlir::Operation *operation, mlir::OpOperand &operand,
                         const mlir::bufferization::AnalysisState &) const {
    auto op = llvm::cast<OperatorOpInterface>(operation);
    return !op.isOutput(operand.getOperandNumber()) || op.readsOutput();
  }

  bool bufferizesToElementwiseAccess(
      mlir::Operation *operation, const mlir::bufferization::AnalysisState &,
      llvm::ArrayRef<mlir::OpOperand *> operands) const {
    auto op = llvm::cast<OperatorOpInterface>(operation);
    // Points read all that they need before they write.
    if (llvm::isa<PointwiseOp>(operation))
      return llvm::all_of(operands, [&](mlir::OpOperand *operand) {
        return op.getMatchingIndexingMap(operand) ==
               op.getMatchingIndexingMap(operands.front());
      });
    // Of several outputs, one may be written before another's point is read.
    if (op.getNumDpsInits() != 1)
      return false;
    mlir::AffineMap written =
        op.getMatchingIndexingMap(op.getDpsInitOperand(0));
    return llvm::all_of(operands, [&](mlir::OpOperand *operand) {
      return !op.isInput(operand->getOperandNumber()) &&
             op.getMatchingIndexingMap(operand) == written;
    });
  }

  mlir::LogicalResult
  bufferize(mlir::Operation *operation, mlir::RewriterBase &rewriter,
            const mlir::bufferization::BufferizationOptions &options,
            mlir::bufferization::BufferizationState &state) const {
    return detail::bufferizeOperator(llvm::cast<OperatorOpInterface>(operation),
                                     rewriter, options, state);
  }
};

} // namespace ftuner::ukernel

#endif // FTUNER_DIALECT_UKERNEL_IR_OPERATORBUFFERIZATION_H
