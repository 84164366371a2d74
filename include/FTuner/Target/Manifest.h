//===- Manifest.h - Description of a compiled module ------------*- C++ -*-===//
//
// Everything that somebody who has only the PTX needs to launch its kernels,
// and what the search found, as JSON. The format is documented in
// docs/manifest.md.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TARGET_MANIFEST_H
#define FTUNER_TARGET_MANIFEST_H

#include "FTuner/PTX/PTX.h"

#include "llvm/Support/raw_ostream.h"
#include <map>

namespace ftuner {

/// The version of the format; docs/manifest.md says what changed with each.
inline constexpr int kManifestFormatVersion = 5;

struct ManifestOptions {
  /// Seconds that each stage took, by name; left out where empty, since they
  /// differ from run to run.
  std::map<std::string, double> seconds;
  /// Whether to ask ptxas, where it is present, for the kernels' resources. It
  /// takes longer than everything else.
  bool hasResources = true;
};

/// Writes the manifest of a compiled module with its translation. Reports
/// attributes that it cannot read; then `os` is not complete.
mlir::LogicalResult writeManifest(mlir::ModuleOp module, const PtxImages &ptx,
                                  const ManifestOptions &options,
                                  llvm::raw_ostream &os);

} // namespace ftuner

#endif // FTUNER_TARGET_MANIFEST_H
