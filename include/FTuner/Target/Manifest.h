//===- Manifest.h - Description of a compiled module ------------*- C++ -*-===//
//
// Everything that somebody who has only the PTX needs to launch its kernels,
// and what the search found, as JSON. The format is documented in
// docs/manifest.md.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TARGET_MANIFEST_H
#define FTUNER_TARGET_MANIFEST_H

#include "FTuner/Target/PTX.h"

#include "llvm/Support/raw_ostream.h"
#include <map>
#include <optional>

namespace ftuner {

/// The version of the format; docs/manifest.md says what changed with each.
inline constexpr int kManifestFormatVersion = 1;

/// What ptxas says about a kernel.
struct PtxResources {
  int64_t registersPerThread = 0;
  int64_t spillStoreBytes = 0;
  int64_t spillLoadBytes = 0;
  int64_t stackBytes = 0;
};

/// Finds ptxas on PATH, or in the folder bin of CUDA_HOME (/usr/local/cuda
/// unless it is set).
std::optional<std::string> findPtxas();

/// Assembles one kernel and reads the figures; none where ptxas fails, e.g. for
/// a processor that its version does not know.
std::optional<PtxResources> measureResources(llvm::StringRef ptxas,
                                             const PtxKernel &kernel,
                                             const PtxTarget &target);

struct ManifestOptions {
  /// Seconds that each stage took, by name; left out where empty, since they
  /// differ from run to run.
  std::map<std::string, double> seconds;
};

/// Writes the manifest of a compiled module with its translation. Reports
/// attributes that it cannot read; then `os` is not complete.
mlir::LogicalResult writeManifest(mlir::ModuleOp module, const PtxModule &ptx,
                                  const ManifestOptions &options,
                                  llvm::raw_ostream &os);

} // namespace ftuner

#endif // FTUNER_TARGET_MANIFEST_H
