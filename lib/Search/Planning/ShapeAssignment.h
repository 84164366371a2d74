//===- ShapeAssignment.h - Which family serves which shape ------*- C++ -*-===//
//
// Sends every shape of a range to one of the families that a plan has chosen:
// sampled sizes of the main axis to the family that is rated best, those
// between them with the sample below. Each interval of sizes is a comparison on
// the host, and predictions err: where they rank, a family keeps the following
// sizes, and the intervals of a cell of the other axes the following cell,
// until another family gains more than `tuning::minTurnGain` over them. So no
// shape loses more than this share of its time against the best family.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_SEARCH_PLANNING_SHAPEASSIGNMENT_H
#define FTUNER_LIB_SEARCH_PLANNING_SHAPEASSIGNMENT_H

#include "FTuner/Search/Ranking/ProgramRanker.h"

namespace ftuner {

class ShapeAssignment {
public:
  /// Ranker, samples, what the ranker says of each, and plan outlive the
  /// object. `isMixed`: some samples break the alignment of vectors, and some
  /// do not.
  ShapeAssignment(const ProgramRanker &ranker, const RangeSamples &samples,
                  llvm::ArrayRef<RankedShape> ranked, bool isMixed, Plan &plan);

  /// Sends every shape to one of the first `numFamilies` of the plan, and
  /// unaligned operands, where sizes cause them, to one of those that take any
  /// alignment.
  void run(size_t numFamilies);
  /// Replaces pairs of which only one part runs, where that is certain.
  void dropIdleParts();

private:
  /// Whether the sizes allow the widest vectors that some sizes do.
  bool isAligned(llvm::ArrayRef<int64_t> shape) const;
  /// Adds to samples the sizes from which a family of the plan has one more
  /// block along the main axis: there another one may be better.
  void addSteps(std::vector<SizeSample> &sizes) const;
  /// Returns the best of some families for a shape of a cell, or the current
  /// one where no other gains more than `tuning::minTurnGain`.
  unsigned bestFamily(llvm::ArrayRef<unsigned> candidates, size_t cell,
                      int64_t size, std::optional<unsigned> current) const;
  /// Sends every shape to one of some families of the plan. If told, only sizes
  /// that are aligned, or that are not, count where a cell has such.
  std::vector<DispatchEntry> assign(llvm::ArrayRef<unsigned> candidates,
                                    llvm::ArrayRef<SizeSample> sizes,
                                    std::optional<bool> areAligned) const;
  /// Lets the entries of cells serve a further cell behind these along another
  /// axis, and returns true, if at none of its sizes another family gains more
  /// than `tuning::minTurnGain`.
  bool extend(std::vector<DispatchEntry> &entries,
              llvm::ArrayRef<unsigned> candidates, size_t cell,
              llvm::ArrayRef<SizeSample> sizes) const;
  /// Entries of one cell along the main axis.
  std::vector<DispatchEntry> assignCell(llvm::ArrayRef<unsigned> candidates,
                                        size_t cell,
                                        llvm::ArrayRef<SizeSample> sizes) const;

  const ProgramRanker &ranker;
  const SearchProblem &problem;
  const Workload &workload;
  unsigned mainAxis;
  const RangeSamples &samples;
  llvm::ArrayRef<RankedShape> ranked;
  llvm::ArrayRef<ShapeCell> cells;
  bool isMixed;
  Plan &plan;
  /// Of the plan's families.
  std::vector<KernelResources> familyResources;
  /// Whether every size has an entry of its own.
  bool isExhaustive = false;
};

/// Drops families that serve nothing, and those that repeat others.
void removeUnusedFamilies(Plan &plan);

} // namespace ftuner

#endif // FTUNER_LIB_SEARCH_PLANNING_SHAPEASSIGNMENT_H
