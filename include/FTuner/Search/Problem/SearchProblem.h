//===- SearchProblem.h - Problem that a search solves -----------*- C++ -*-===//
#ifndef FTUNER_SEARCH_PROBLEM_SEARCHPROBLEM_H
#define FTUNER_SEARCH_PROBLEM_SEARCHPROBLEM_H

#include "FTuner/Search/Problem/Plan.h"
#include "FTuner/Search/Problem/SearchOptions.h"
#include <memory>

namespace ftuner {

class SearchMemory;

/// ζ of a device: blocks of 256 threads with 128 registers each that the
/// registers of an SM hold; 2 on V100, as in the paper, which found it there
/// by heuristic search.
int64_t defaultZeta(const DeviceSpec &device);

/// The input of a search: everything that a strategy may look at.
struct SearchProblem {
  const Workload &workload;
  const DeviceSpec &device;
  /// Codegen paths whose families compete. A path that does not support the
  /// workload offers no families.
  llvm::ArrayRef<const CodegenModel *> paths;
  const CostModel &costModel;
  SearchOptions options;
  /// Families that must not be chosen, e.g. because ptxas spills their
  /// registers.
  std::vector<KernelFamily> rejected = {};
  /// Made on first use, see `evaluator`, `predictor` and `rankingEvaluator`;
  /// copies share them.
  mutable std::shared_ptr<CostEvaluator> madeEvaluator = nullptr;
  mutable std::shared_ptr<CostEvaluator> madePredictor = nullptr;
  mutable std::shared_ptr<CostEvaluator> madePrefilter = nullptr;
  /// Keeps what a search finds (SearchMemory.h) for further searches of the
  /// same problem, with other paths or rejected families; null if there are
  /// none.
  std::shared_ptr<SearchMemory> memory = nullptr;

  int64_t zeta() const {
    return options.zeta ? options.zeta : defaultZeta(device);
  }
  bool isRejected(const KernelFamily &family) const;
  /// Names of the paths, separated by commas.
  std::string pathNames() const;
  /// Returns the evaluator of the cost model. Workload, device, options and
  /// cost model must not change after the first call.
  CostEvaluator &evaluator() const;
  /// Returns the evaluator of the cost model if that predicts time, or else the
  /// evaluator of `latency`.
  CostEvaluator &predictor() const;
  /// Returns the evaluator that scores every program of a search. It belongs to
  /// the prefilter if the cost model has one (`CostModel::prefilter`; the model
  /// then orders the best programs anew, Reordering.h), or else to the cost
  /// model itself.
  CostEvaluator &rankingEvaluator() const;
  std::optional<Prefilter> prefilter() const {
    return costModel.prefilter(options.cost);
  }
  /// Returns the score of `rankingEvaluator` for a family's program and a shape
  /// (every extent ≥ 1).
  double score(const KernelFamily &family, llvm::ArrayRef<int64_t> shape) const;
  /// Returns the cost model's score of that program, with its terms.
  CostBreakdown evaluate(const KernelFamily &family,
                         llvm::ArrayRef<int64_t> shape) const;
  /// Returns the predicted microseconds of a family's program for a shape, with
  /// their terms, whatever the cost model is. If rows of the shape are not
  /// aligned for the family's accesses, the prediction is for narrower
  /// accesses.
  CostBreakdown predict(const KernelFamily &family,
                        llvm::ArrayRef<int64_t> shape) const;
  /// Returns the scores of such predictions for pairs of a family and a shape.
  std::vector<double>
  predictEach(llvm::ArrayRef<const KernelFamily *> families,
              llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes) const;

  /// Checks the problem itself: workload and options.
  llvm::Error check() const;
  /// Checks that a plan may be run, from whatever source: every family has a
  /// correct kernel (`checkKernel`), indices and boxes fit, and no vector
  /// accesses an operand that is not aligned for it.
  llvm::Error checkLegality(const Plan &plan) const;
  /// Checks the answer of a search: it is legal, its families are feasible, and
  /// every declared shape has an entry. The partitions of such a plan write
  /// each row exactly once, for every extent, and pad only the last block
  /// (Partition.h).
  llvm::Error verify(const Plan &plan) const;
};

} // namespace ftuner

#endif // FTUNER_SEARCH_PROBLEM_SEARCHPROBLEM_H
