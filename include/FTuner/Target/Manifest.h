//===- Manifest.h - Description of a compiled module ------------*- C++ -*-===//
//
// The manifest has, as JSON, everything that is needed in addition to the PTX
// to launch its kernels, and the results of the search. The format is
// documented in docs/manifest.md.
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
  /// True if ptxas, if it is present, is asked for the kernels' resources. This
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
