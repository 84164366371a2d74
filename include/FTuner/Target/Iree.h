//===- Iree.h - Planned modules for IREE ------------------------*- C++ -*-===//
//
// IREE runs kernels of others: an executable holds their PTX, each kernel is an
// export of it, and a dispatch names the first of a chain of exports, of which
// the host takes the first whose condition holds (docs/iree.md). So a workload
// becomes one dispatch, and the families of its plan one chain:
//
//   class  = the family of the sizes, by comparisons
//   blocks = scf.index_switch class
//   flow.dispatch @kernels::@first[class, blocks](tensors, i32…)
//
// A plan with split-K slices has another dispatch and chain in front, of the
// kernels that sum slices.
//
// For IREE's CPU the executable is code that calls a function for each kernel,
// which FTuner's plugin for IREE runs in the emulator (lib/IreePlugin).
//
// All other operators stay as they are, for IREE to compile. Operations of IREE
// are in their generic form, so that nothing of it is needed.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TARGET_IREE_H
#define FTUNER_TARGET_IREE_H

#include "FTuner/PTX/PTX.h"
#include "FTuner/Pipelines/Pipelines.h"
#include "FTuner/Target/OperatorWork.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <optional>

namespace ftuner {

/// Turns the `util.func` of IREE's own phases (`--compile-to=input`,
/// `preprocessing`) into functions, which `restoreIreeFunctions` turns back,
/// and marks by attributes the sizes that `util.assume.int`,
/// `hal.tensor.import` and `flow.tensor.tie_shape` are about.
void adoptIreeFunctions(mlir::ModuleOp module);
void restoreIreeFunctions(mlir::ModuleOp module);
/// Has `restoreIreeFunctions` make a private `util.func` of a function.
void makePrivateIreeFunction(mlir::func::FuncOp function);
/// Reports a context that knows no operations but registered ones.
mlir::LogicalResult expectUnregisteredDialects(mlir::ModuleOp module);

/// Targets of IREE that run a module: `cuda` and `llvm-cpu`.
enum class IreeTarget { Cuda, Cpu };

struct IreeOptions {
  IreeTarget target = IreeTarget::Cuda;
  /// The path of ptxas, if the executable for CUDA is to hold a cubin instead
  /// of PTX; and the cubin's architecture, unless it equals the PTX's.
  std::string ptxas;
  std::optional<GpuArchitecture> architecture;
  /// True if tensors may begin at any address that their elements may have.
  /// Otherwise each begins at a multiple of the alignment that kernels need.
  bool hasAnyAddress = false;
};

/// The name of the executable of a module.
inline constexpr llvm::StringLiteral kIreeExecutableName = "ftuner_kernels";

/// Contents of the executable.
struct IreeKernels {
  /// Lowered gpu.modules, and the device.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  PtxModule ptx;
  /// Dispatches of its kernels in the module.
  int64_t numDispatches = 0;
  /// Work of every function that computes something, as it was before its
  /// workloads became dispatches.
  std::vector<FunctionOperators> work;
};

/// Turns the planned workloads of a module on tensors into dispatches of one
/// executable, `@ftuner_kernels`, that holds the PTX of their kernels or calls
/// the plugin, and removes FTuner's operations and attributes from the module.
/// Returns the kernels; the list is empty if there is no workload. The context
/// must allow unregistered dialects, and have the dialects of kernels loaded
/// (`loadKernelDialects`). Reports a module without a device, workloads without
/// a plan or on buffers, more operands than IREE can pass (16 tensors, 64
/// values of 32 bits), and errors of ptxas.
mlir::FailureOr<IreeKernels> convertToIree(mlir::ModuleOp module,
                                           const IreeOptions &iree = {});

/// Adds the passes from linalg on tensors, in functions or in functions of
/// IREE's phases, to a module for IREE. `kernels`, if given, gets the contents
/// of its executable.
void buildIreePipeline(mlir::OpPassManager &pm, const FTunerOptions &options,
                       const IreeOptions &iree = {},
                       IreeKernels *kernels = nullptr);

/// A transform spec for `iree-compile
/// --iree-preprocessing-transform-spec-filename`, as text: finds the products
/// of the module wherever they occur, and replaces each by a dispatch as above.
/// Warns of those that cannot be found, and of epilogues that are left out;
/// reports a module in which nothing is left. The module is changed.
mlir::FailureOr<std::string> buildIreeSpec(mlir::ModuleOp module,
                                           const FTunerOptions &options,
                                           const IreeOptions &iree = {},
                                           IreeKernels *kernels = nullptr);

inline constexpr llvm::StringLiteral kIreePipelineName = "ftuner-to-iree";
/// Registers `--ftuner-to-iree`, for CUDA, with the options of ftuner-compile.
void registerIreePipeline();

} // namespace ftuner

#endif // FTUNER_TARGET_IREE_H
