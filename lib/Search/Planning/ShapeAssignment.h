//===- ShapeAssignment.h - Shapes of each family ----------------*- C++ -*-===//
//
// Sends every shape of a range to one of the families that a plan has chosen. A
// sampled size of the main axis goes to the family with the best rating; sizes
// between two samples follow the lower one. Each interval of sizes costs a
// comparison on the host, and predictions have errors. So if predicted times
// rank, a family keeps the following sizes, and the intervals of a cell of the
// other axes also serve the following cell, until another family gains more
// than `tuning::minTurnGain`. Thus no shape loses more than this share of its
// time against the best family.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_SEARCH_PLANNING_SHAPEASSIGNMENT_H
#define FTUNER_LIB_SEARCH_PLANNING_SHAPEASSIGNMENT_H

#include "FTuner/Search/Ranking/ProgramRanker.h"

namespace ftuner {

class ShapeAssignment {
public:
  /// `ranked` has the ranker's answer for each sample. `isMixed` is true if
  /// some samples break the alignment of vectors, and some do not. All
  /// arguments outlive the object.
  ShapeAssignment(const ProgramRanker &ranker, const RangeSamples &samples,
                  llvm::ArrayRef<RankedShape> ranked, bool isMixed, Plan &plan);

  /// Sends every shape to one of the first `numFamilies` families of the plan.
  /// If sizes cause unaligned operands, sends these to families that take any
  /// alignment.
  void run(size_t numFamilies);
  /// Replaces pairs of which certainly only one part runs.
  void dropIdleParts();

private:
  /// Returns whether operands of the shape are aligned for the widest accesses
  /// of the candidates.
  bool isAligned(llvm::ArrayRef<int64_t> shape) const;
  /// Adds the sizes from which a family of the plan has one more block along
  /// the main axis: another family may be better from there on.
  void addSteps(std::vector<SizeSample> &sizes) const;
  /// Returns the best of some families for a shape of a cell, or the current
  /// one if no other gains more than `tuning::minTurnGain`.
  unsigned bestFamily(llvm::ArrayRef<unsigned> candidates, size_t cell,
                      int64_t size, std::optional<unsigned> current) const;
  /// Sends every shape to one of some families of the plan. With a value of
  /// `areAligned`, only aligned or only unaligned sizes count in a cell that
  /// has such sizes.
  std::vector<DispatchEntry> assign(llvm::ArrayRef<unsigned> candidates,
                                    llvm::ArrayRef<SizeSample> sizes,
                                    std::optional<bool> areAligned) const;
  /// Lets the entries of cells also serve the next cell along another axis and
  /// returns true, unless at one of its sizes another family gains more than
  /// `tuning::minTurnGain`.
  bool extend(std::vector<DispatchEntry> &entries,
              llvm::ArrayRef<unsigned> candidates, size_t cell,
              llvm::ArrayRef<SizeSample> sizes) const;
  /// Returns the entries of one cell along the main axis.
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
  /// Resources of the plan's families.
  std::vector<KernelResources> familyResources;
  /// True if every size has a separate entry.
  bool isExhaustive = false;
};

/// Drops families that serve no shape, and families that equal others.
void removeUnusedFamilies(Plan &plan);

} // namespace ftuner

#endif // FTUNER_LIB_SEARCH_PLANNING_SHAPEASSIGNMENT_H
