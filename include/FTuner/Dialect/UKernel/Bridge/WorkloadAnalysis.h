//===- WorkloadAnalysis.h - Workloads of a module's operators ---*- C++ -*-===//
//
// An operator is described as a `Workload` by `toWorkload`. Passes that ask for
// the same operators get the descriptions from this analysis of the module, and
// a pass that changes no operator hands it on to the next:
//
//   auto &workloads = getAnalysis<WorkloadAnalysis>();
//   const Workload &workload = workloads.get(op);
//   …
//   markAnalysesPreserved<WorkloadAnalysis>();
//
// It reaches from packing to planning and to the rounds of assembler feedback.
// It cannot reach further, and `toWorkload`, which takes some 10 us, describes
// an operator anew
//
// * in formation, where only the precision asks for it, which changes the
//   operator;
// * after bufferization, for dispatch and for measurers: bufferization is
//   upstream's, and replaces every operator by one on buffers;
// * once for each kernel that is emitted: kernels come from anywhere, have a
//   copy of the operator without ranges, and are emitted in parallel;
// * in explanations, which are written after the pass manager has run.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_DIALECT_UKERNEL_BRIDGE_WORKLOADANALYSIS_H
#define FTUNER_DIALECT_UKERNEL_BRIDGE_WORKLOADANALYSIS_H

#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"

namespace ftuner {

/// Describes each operator of a module once.
class WorkloadAnalysis {
public:
  /// MLIR constructs analyses with the operation that they analyze.
  explicit WorkloadAnalysis(mlir::Operation *module) { (void)module; }

  /// Returns the workload of an operator, which stays where it is.
  const Workload &get(ukernel::OperatorOpInterface op) {
    std::unique_ptr<Workload> &workload = workloads[op];
    if (!workload)
      workload = std::make_unique<Workload>(toWorkload(op));
    return *workload;
  }
  /// Drops the workload of an operator that changes or is erased. Names of
  /// plans do not count: they are not part of a workload.
  void erase(mlir::Operation *op) { workloads.erase(op); }

private:
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<Workload>> workloads;
};

} // namespace ftuner

#endif // FTUNER_DIALECT_UKERNEL_BRIDGE_WORKLOADANALYSIS_H
