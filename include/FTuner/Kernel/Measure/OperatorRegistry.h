//===- OperatorRegistry.h - Operators behind workloads ----------*- C++ -*-===//
#ifndef FTUNER_KERNEL_MEASURE_OPERATORREGISTRY_H
#define FTUNER_KERNEL_MEASURE_OPERATORREGISTRY_H

#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Workload/Workload.h"
#include "mlir/IR/OwningOpRef.h"
#include <memory>
#include <vector>

namespace ftuner {

/// A measurement asks for a workload, a kernel needs its operator: this knows
/// both.
class OperatorRegistry {
public:
  /// Notes a copy of an operator on buffers, unless one that computes the same
  /// is known. Returns the workload that requests name it by; it lives as long
  /// as the registry.
  const Workload &add(ukernel::OperatorOpInterface op, llvm::StringRef name);

  struct Entry {
    Workload workload;
    /// In the module.
    ukernel::OperatorOpInterface op;
    mlir::OwningOpRef<mlir::ModuleOp> module;

    /// Why the operator has no such shape, e.g. since an extent is static;
    /// empty if it has.
    std::string objectionTo(llvm::ArrayRef<int64_t> shape) const;
  };
  /// The entry whose workload it is, else the first one that is alike:
  /// `Workload::fingerprint` is equal, and so are static extents. Null if there
  /// is none.
  const Entry *find(const Workload &workload) const;

private:
  std::vector<std::unique_ptr<Entry>> entries;
};

} // namespace ftuner

#endif // FTUNER_KERNEL_MEASURE_OPERATORREGISTRY_H
