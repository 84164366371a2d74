//===- FragmentEpilogueWork.h - What epilogues execute ----------*- C++ -*-===//
#ifndef FTUNER_CODEGEN_FRAGMENTEPILOGUEWORK_H
#define FTUNER_CODEGEN_FRAGMENTEPILOGUEWORK_H

#include "FTuner/Codegen/FragmentTile.h"

namespace ftuner {

/// Instructions of one warp that take its sums from fragments to the output of
/// a contraction, through a staging tile of shared memory. `accessBytes`: of
/// the factors' copies (TensorFactors.h).
double fragmentEpilogueInstructions(const Workload &workload,
                                    const FragmentTile &tile,
                                    int64_t accessBytes);

/// The form of an epilogue's machine code, which stays small where it computes
/// much: a kernel with GELU had 182 KiB, and took 56.8 µs on an H200 where its
/// product alone takes 17.
struct EpilogueCode {
  /// Trips of a warp over a staging tile whose loads come before their stores,
  /// where none of them lies outside or where they read memory, and whether a
  /// loop computes them one by one.
  int64_t tripsTogether;
  bool computesInLoop;
  /// True where a loop fills the staging tile; else its fillings follow each
  /// other in the code.
  bool hasLoopOfFillings;
};
EpilogueCode epilogueCode(const Workload &workload, const FragmentTile &tile,
                          int64_t accessBytes);

/// Returns true where the output holds the sums themselves, or the sums rounded
/// to f16 or bf16: they start from a scalar, and there is no other epilogue.
bool storesSums(const Workload &workload);

} // namespace ftuner

#endif // FTUNER_CODEGEN_FRAGMENTEPILOGUEWORK_H
