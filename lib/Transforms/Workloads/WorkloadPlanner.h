//===- WorkloadPlanner.h - Plans of a module's workloads --------*- C++ -*-===//
#ifndef FTUNER_LIB_TRANSFORMS_WORKLOADS_WORKLOADPLANNER_H
#define FTUNER_LIB_TRANSFORMS_WORKLOADS_WORKLOADPLANNER_H

#include "FTuner/Dialect/UKernel/Bridge/WorkloadAnalysis.h"
#include "FTuner/Search/Setup/SearchSetup.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

namespace ftuner {

/// Plans the operators of a module by searches, and writes the plans into the
/// module. Reports errors at the operator.
class WorkloadPlanner {
public:
  /// `measurer` measures for the search; null if it does not measure.
  WorkloadPlanner(mlir::ModuleOp module, WorkloadAnalysis &workloads,
                  const SearchSetup &setup, const DeviceSpec &device,
                  const PathSupport &support, Measurer *measurer = nullptr)
      : module(module), workloads(workloads), setup(setup), device(device),
        support(support), measurer(measurer) {}

  /// Checks the plans that an operator has. Searches again for a plan that has
  /// a family it rejects.
  mlir::LogicalResult takePlan(ukernel::OperatorOpInterface op);

  /// Plans operators without plans. Searches once for operators with equal
  /// workloads. Searches for different workloads run in parallel, or in turn if
  /// a measurer serves them. Plans are numbered in the order of the operators.
  mlir::LogicalResult planAll(llvm::ArrayRef<ukernel::OperatorOpInterface> ops);

private:
  /// Codegen paths that a search may take: all that are given, or only those
  /// that need no exact architecture.
  enum class Paths { All, Portable };

  llvm::Expected<Plan> search(const Workload &workload, Paths paths,
                              std::vector<KernelFamily> rejected = {}) const;
  /// Solves a problem with some of its codegen paths. Further searches for the
  /// same problem take less time.
  llvm::Expected<Plan> search(SearchProblem &problem, Paths paths) const;
  /// Checks that a plan, which may come from anywhere, is legal.
  mlir::LogicalResult checkPlan(ukernel::PlanOp plan,
                                ukernel::OperatorOpInterface op);
  /// Searches again if the plan has a family that it rejects.
  mlir::LogicalResult replaceRejected(ukernel::PlanOp plan,
                                      ukernel::OperatorOpInterface op,
                                      Paths paths);
  /// Adds the answer as the portable plan of `plan`. If the answer is an error,
  /// the module runs only on the exact architecture.
  mlir::LogicalResult addPortable(ukernel::PlanOp plan,
                                  ukernel::OperatorOpInterface op,
                                  llvm::Expected<Plan> answer,
                                  mlir::SymbolTable &symbols);
  mlir::FailureOr<ukernel::PlanOp> createPlan(ukernel::OperatorOpInterface op,
                                              llvm::StringRef name,
                                              const Plan &plan,
                                              mlir::OpBuilder &b);

  mlir::ModuleOp module;
  WorkloadAnalysis &workloads;
  const SearchSetup &setup;
  const DeviceSpec &device;
  const PathSupport &support;
  Measurer *measurer;
  unsigned numPlans = 0;
};

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_WORKLOADS_WORKLOADPLANNER_H
