//===- BufferizableOpInterfaceImpl.cpp - Bufferization of operators -------===//
#include "FTuner/Dialect/UKernel/IR/OperatorBufferization.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace ftuner::ukernel;

LogicalResult ftuner::ukernel::detail::bufferizeOperator(
    OperatorOpInterface op, RewriterBase &rewriter,
    const BufferizationOptions &options, BufferizationState &state) {
  if (!op.hasTensors())
    return success();
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    if (!isa<TensorType>(operand.getType())) {
      operands.push_back(operand);
      continue;
    }
    FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
    if (failed(buffer))
      return failure();
    operands.push_back(*buffer);
  }
  SmallVector<Value> outputs;
  for (OpOperand &output : op.getDpsInitsMutable())
    outputs.push_back(operands[output.getOperandNumber()]);
  OperationState newState(op->getLoc(), op->getName(), operands, TypeRange(),
                          op->getAttrs());
  for (Region &region : op->getRegions())
    newState.addRegion()->takeBody(region);
  rewriter.create(newState);
  replaceOpWithBufferizedValues(rewriter, op, outputs);
  return success();
}

void ftuner::ukernel::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, UKernelDialect *) {
    PointwiseOp::attachInterface<OperatorBufferization<PointwiseOp>>(*context);
    RowReductionOp::attachInterface<OperatorBufferization<RowReductionOp>>(
        *context);
    WorkloadOp::attachInterface<OperatorBufferization<WorkloadOp>>(*context);
  });
}
