//===- BufferizableOpInterfaceImpl.cpp - Bufferization of workloads -------===//
//
// A workload writes its output operand and reads everything else; it reads the
// output only where no init is given. init and extras are read once, at the
// point that is written, so one that equals the output in value and map may
// share its buffer. lhs and rhs are read at many points and may not.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Dialect/UKernel/IR/UKernel.h"

#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace ftuner::ukernel;

namespace {
struct WorkloadOpInterface
    : public DstBufferizableOpInterfaceExternalModel<WorkloadOpInterface,
                                                     WorkloadOp> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const AnalysisState &) const {
    auto workload = cast<WorkloadOp>(op);
    return &operand != &workload.getOutputMutable() || !workload.getInit();
  }

  bool bufferizesToElementwiseAccess(Operation *op, const AnalysisState &,
                                     ArrayRef<OpOperand *> operands) const {
    auto workload = cast<WorkloadOp>(op);
    return llvm::all_of(operands, [&](OpOperand *operand) {
      unsigned number = operand->getOperandNumber();
      return number >= 2 &&
             workload.getMapOf(number) == workload.getOutputMap();
    });
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto workload = cast<WorkloadOp>(op);
    if (workload->getNumResults() == 0)
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
    OperationState newState(op->getLoc(), op->getName(), operands, TypeRange(),
                            op->getAttrs());
    for (Region &region : op->getRegions())
      newState.addRegion()->takeBody(region);
    rewriter.create(newState);
    replaceOpWithBufferizedValues(rewriter, op, operands.back());
    return success();
  }
};
} // namespace

void ftuner::ukernel::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, UKernelDialect *) {
    WorkloadOp::attachInterface<WorkloadOpInterface>(*context);
  });
}
