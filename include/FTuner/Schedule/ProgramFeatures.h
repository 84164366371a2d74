//===- ProgramFeatures.h - Numbers of a program's statements ----*- C++ -*-===//
//
// What predictors read of each statement of a program: the 164 numbers that
// Ansor (OSDI 2020, appendix B) has for a statement that stores, and CDMPP
// (EuroSys 2024) for a leaf of its tree. Lengths and counts are magnitudes:
// log2(1 + x).
//
//   0    operations by kind, of all iterations                             16
//   16   vectorized, unrolled, parallel loops: number, product of lengths,
//        length of the innermost one, and where it lies (8)            3 × 11
//   49   on a GPU, blocks along x, y, z, threads along x, y, z, virtual
//        threads                                                            8
//   57   of the five buffers with the most lines: read, written or both (3),
//        bytes, bytes once, lines, lines once, kind of reuse (3), distance
//        of reuse in iterations and bytes, how often; the four by that,
//        stride of the innermost loop                                  5 × 18
//   147  operations for each byte, at ten depths of the loops              10
//   157  bytes of what is written to, iterations of the loops outside of it,
//        inside of it, and all                                              4
//   161  iterations, number of loops, longest unrolled run                  3
//
// A program's order of blocks, blocks that take several tiles, warps that take
// turns (ping-pong) and the registers that it may have are not seen: programs
// that differ in these alone have the same numbers.
//
// Ours where the sources say nothing: blocks lie along x alone, as grids here
// do; a line has 64 bytes; threads along x are all of a block's; tensor
// instructions are vectorized loops.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SCHEDULE_PROGRAMFEATURES_H
#define FTUNER_SCHEDULE_PROGRAMFEATURES_H

#include "FTuner/Schedule/ProgramAst.h"

namespace ftuner {

inline constexpr size_t kNumProgramFeatures = 164;
using ProgramFeatures = std::array<float, kNumProgramFeatures>;

/// Names of the numbers, e.g. "vectorized.length", "buffer0.bytes".
std::vector<std::string> programFeatureNames();

/// The numbers of each statement, in their order.
std::vector<ProgramFeatures> programFeatures(const ProgramAst &ast);

} // namespace ftuner

#endif // FTUNER_SCHEDULE_PROGRAMFEATURES_H
