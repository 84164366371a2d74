//===- OperatorWorkload.h - Operators as the core sees them -----*- C++ -*-===//
//
// From an operator of the IR, through `OperatorOpInterface`, to the `Workload`
// that search, cost models and codegen paths know, and which paths compute it.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_DIALECT_UKERNEL_BRIDGE_OPERATORWORKLOAD_H
#define FTUNER_DIALECT_UKERNEL_BRIDGE_OPERATORWORKLOAD_H

#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Dialect/UKernel/IR/Computations.h"
#include "FTuner/Schedule/CodegenModel.h"

namespace ftuner {

/// The workload that the operator poses to a search: its axes, with names in
/// capital letters and the operator's ranges, static extents as fixed ones,
/// others open; operands in the operator's order, factors and symbols of
/// `ukernel.extents`. Sizes below 1 are left out of ranges: they cost nothing,
/// and every plan serves them.
Workload toWorkload(ukernel::OperatorOpInterface op);

/// The same by static extents alone, other axes taking all sizes: kernels know
/// no ranges.
Workload toUnrangedWorkload(ukernel::OperatorOpInterface op);

/// The name that an axis has in the workload.
std::string axisNameOf(ukernel::OperatorOpInterface op, unsigned axis);

//===----------------------------------------------------------------------===//
// Support
//===----------------------------------------------------------------------===//

/// Which codegen paths, those that compete by default or more, compute a
/// workload: on the module's device, or, for a module without one, on any
/// built-in device.
class PathSupport {
public:
  /// Emits an error if the module's device is none.
  static mlir::FailureOr<PathSupport> of(mlir::ModuleOp module);

  /// Asks these paths, too.
  void add(llvm::ArrayRef<const CodegenModel *> others);
  /// The same devices and these paths alone.
  PathSupport by(llvm::ArrayRef<const CodegenModel *> chosen) const;
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
