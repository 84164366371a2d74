//===- WorkloadPlanner.h - Plans of a module's workloads --------*- C++ -*-===//
#ifndef FTUNER_LIB_TRANSFORMS_WORKLOADS_WORKLOADPLANNER_H
#define FTUNER_LIB_TRANSFORMS_WORKLOADS_WORKLOADPLANNER_H

#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "FTuner/Search/Setup/SearchSetup.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

namespace ftuner {

/// Asks the search about the workloads of one module, and writes its answers
/// into the module. What fails is reported at the workload.
class WorkloadPlanner {
public:
  /// `measurer` measures for the search; null where nothing is measured.
  WorkloadPlanner(mlir::ModuleOp module, const SearchSetup &setup,
                  const DeviceSpec &device, const PathSupport &support,
                  Measurer *measurer = nullptr)
      : module(module), setup(setup), device(device), support(support),
        measurer(measurer) {}

  /// Checks the plans that the workload has, and replaces what they reject.
  mlir::LogicalResult takePlan(ukernel::OperatorOpInterface op);

  /// Plans workloads without plans, equal ones once and different ones in
  /// parallel, but one after the other where a measurer serves them. Plans are
  /// numbered in the order of the workloads.
  mlir::LogicalResult
  planAll(llvm::ArrayRef<ukernel::OperatorOpInterface> workloads);

private:
  /// Which codegen paths a search may take: all that are given, or those of
  /// them that need no exact architecture.
  enum class Paths { All, Portable };

  llvm::Expected<Plan> search(const Workload &workload, Paths paths,
                              std::vector<KernelFamily> rejected = {}) const;
  /// Returns true where paths that need an exact architecture compete for the
  /// workload.
  bool mayNeedExactArchitecture(const Workload &workload) const;
  /// A plan may come from anywhere; kernels rely on its being legal.
  mlir::LogicalResult checkPlan(ukernel::PlanOp plan,
                                ukernel::OperatorOpInterface op);
  /// Answers again where the plan holds a family that it rejects.
  mlir::LogicalResult replaceRejected(ukernel::PlanOp plan,
                                      ukernel::OperatorOpInterface op,
                                      Paths paths);
  /// Names the answer as the portable plan of `plan`. Where there is none, the
  /// module runs on the exact architecture alone.
  mlir::LogicalResult addPortable(ukernel::PlanOp plan,
                                  ukernel::OperatorOpInterface op,
                                  llvm::Expected<Plan> answer,
                                  mlir::SymbolTable &symbols);
  mlir::FailureOr<ukernel::PlanOp> createPlan(ukernel::OperatorOpInterface op,
                                              llvm::StringRef name,
                                              const Plan &plan,
                                              mlir::OpBuilder &b);

  mlir::ModuleOp module;
  const SearchSetup &setup;
  const DeviceSpec &device;
  const PathSupport &support;
  Measurer *measurer;
  unsigned numPlans = 0;
};

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_WORKLOADS_WORKLOADPLANNER_H
