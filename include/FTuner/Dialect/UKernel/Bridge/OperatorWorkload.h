//===- OperatorWorkload.h - Operators as the core sees them -----*- C++ -*-===//
//
// Converts an operator of the IR, through `OperatorOpInterface`, to the
// `Workload` that search, cost models and codegen paths know, and tells which
// paths compute it.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_DIALECT_UKERNEL_BRIDGE_OPERATORWORKLOAD_H
#define FTUNER_DIALECT_UKERNEL_BRIDGE_OPERATORWORKLOAD_H

#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Dialect/UKernel/IR/Computations.h"
#include "FTuner/Schedule/CodegenModel.h"

namespace ftuner {

/// Returns the workload that the operator poses to a search: its axes, with
/// names in capital letters and the operator's ranges (static extents are
/// fixed, others open); its operands in the operator's order; factors and
/// symbols of `ukernel.extents`. Sizes below 1 are left out of ranges: they
/// cost nothing, and every plan serves them.
Workload toWorkload(ukernel::OperatorOpInterface op);

/// Like `toWorkload`, but only static extents are fixed, and other axes take
/// all sizes: kernels do not know ranges.
Workload toUnrangedWorkload(ukernel::OperatorOpInterface op);

/// Returns the name that an axis has in the workload.
std::string axisNameOf(ukernel::OperatorOpInterface op, unsigned axis);

//===----------------------------------------------------------------------===//
// Support
//===----------------------------------------------------------------------===//

/// Tells which codegen paths compute a workload on the module's device, or, for
/// a module without a device, on any built-in device. The paths are the default
/// ones, and those that `add` adds.
class PathSupport {
public:
  /// Makes the support of the default paths for a module. Emits an error if the
  /// module's device is not a valid one.
  static mlir::FailureOr<PathSupport> forModule(mlir::ModuleOp module);

  /// Adds paths.
  void add(llvm::ArrayRef<const CodegenModel *> others);
  /// Returns the support of only these paths, on the same devices.
  PathSupport restrictedTo(llvm::ArrayRef<const CodegenModel *> chosen) const;
  /// Names of the paths, those that were added last.
  std::vector<llvm::StringRef> pathsFor(const Workload &workload) const;
  /// Returns success if one of the paths computes the workload; else the reason
  /// of every path, for the first device if there are several.
  llvm::Error check(const Workload &workload) const;
  /// Returns true if one of the paths computes the workload.
  bool supports(const Workload &workload) const {
    return !llvm::errorToBool(check(workload));
  }

private:
  std::vector<DeviceSpec> devices;
  llvm::SmallVector<const CodegenModel *> paths = defaultCodegenModels();
};

} // namespace ftuner

#endif // FTUNER_DIALECT_UKERNEL_BRIDGE_OPERATORWORKLOAD_H
