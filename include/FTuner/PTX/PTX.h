//===- PTX.h - PTX of a compiled module -------------------------*- C++ -*-===//
//
// The kernels of a compiled module (the output of `ftuner-compile`) as one PTX
// module. Kernels are translated apart from each other, in parallel, and joined
// as text: the same input gives the same bytes whatever the number of cores.
//
// The PTX depends on no CUDA toolkit and on no device library. A kernel that
// would need one is an error.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_PTX_PTX_H
#define FTUNER_PTX_PTX_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace ftuner {

/// An architecture that kernels are compiled for.
struct GpuArchitecture {
  /// Compute capability times 10, e.g. 90.
  int number = 0;
  /// True if code may use instructions that only GPUs of this number have, and
  /// runs only on them ("sm_90a"). Other PTX runs on newer GPUs, too.
  bool isExact = false;

  /// LLVM's processor name, which is ptxas's architecture too, e.g. "sm_90".
  std::string name() const;
  /// By number, exact ones last.
  bool operator<(const GpuArchitecture &other) const {
    return std::tie(number, isExact) < std::tie(other.number, other.isExact);
  }
  bool operator==(const GpuArchitecture &other) const {
    return number == other.number && isExact == other.isExact;
  }
};

/// Facts of a device that LLVM and ptxas need.
struct PtxTarget {
  GpuArchitecture architecture;
  /// LLVM's subtarget features. PTX ISA 6.5 below sm_50, 8.0 up to sm_90, 8.6
  /// for sm_90a; empty for newer processors, for which LLVM takes the oldest
  /// PTX ISA that knows them.
  std::string features;

  std::string chip() const { return architecture.name(); }
};

/// Returns whether a kernel of the compiled module belongs to a codegen path
/// that needs an exact architecture.
bool needsExactArchitecture(mlir::ModuleOp module);

/// Returns whether a module with such a kernel also has kernels for devices of
/// other architectures: a portable image beside the exact one
/// (FTuner/Dialect/UKernel/IR/Images.h).
bool hasPortableImage(mlir::ModuleOp module);

/// The target for the device that the module is compiled for (its attribute
/// `ukernel.device`), exact where a kernel needs that. Reports a missing
/// device, and processors unknown to LLVM.
mlir::FailureOr<PtxTarget> getPtxTarget(mlir::ModuleOp module);

/// The target for another processor. Reports processors unknown to LLVM, and
/// those that are not exact where a kernel needs that and there is no portable
/// image.
mlir::FailureOr<PtxTarget> getPtxTarget(mlir::ModuleOp module,
                                        const GpuArchitecture &architecture);

/// One kernel: a `gpu.module` with one entry.
struct PtxKernel {
  /// Name of the entry: a C identifier, unique in the module.
  std::string entry;
  /// PTX of this kernel alone, a complete module.
  std::string text;
};

struct PtxModule {
  PtxTarget target;
  /// In the order of the gpu.modules.
  std::vector<PtxKernel> kernels;
  /// All kernels as one PTX module.
  std::string text;

  /// The kernel of that name; null where there is none.
  const PtxKernel *find(llvm::StringRef entry) const;
};

/// The images of a module as PTX.
struct PtxImages {
  /// For the device.
  PtxModule own;
  /// Code for devices of other architectures if `own` is exact, as far as the
  /// module has kernels for them.
  std::optional<PtxModule> portable;

  /// The PTX of a kernel, from the first image that has it, by its entry; null
  /// where there is none.
  std::pair<const PtxModule *, const PtxKernel *>
  find(llvm::StringRef entry) const;
  /// The entries of all kernels, those of `own` first.
  std::vector<llvm::StringRef> entries() const;
};

/// Translates every `gpu.module` of a compiled module for its device; of a
/// module with two images, those of the exact one. Reports
///  * a module without kernels, and a gpu.module without exactly one entry;
///  * entries whose names are no C identifiers or not unique;
///  * functions that exist in a device library only (`.extern .func`), and
///    mathematical intrinsics that PTX has no instructions for.
///  * instructions that the target lacks.
mlir::FailureOr<PtxModule> translateToPtx(mlir::ModuleOp module);

/// Translates for another processor than the device's. A module with two images
/// contributes the kernels of the image that runs there.
mlir::FailureOr<PtxModule> translateToPtx(mlir::ModuleOp module,
                                          const PtxTarget &target);

/// Translates all images of the module.
mlir::FailureOr<PtxImages> translateImages(mlir::ModuleOp module);

} // namespace ftuner

#endif // FTUNER_PTX_PTX_H
