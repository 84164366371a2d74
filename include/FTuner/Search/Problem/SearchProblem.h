//===- SearchProblem.h - What a search is asked -----------------*- C++ -*-===//
#ifndef FTUNER_SEARCH_PROBLEM_SEARCHPROBLEM_H
#define FTUNER_SEARCH_PROBLEM_SEARCHPROBLEM_H

#include "FTuner/Search/Problem/Plan.h"
#include "FTuner/Search/Problem/SearchOptions.h"
#include <memory>

namespace ftuner {

/// ζ of a device: blocks of 256 threads with 128 registers each that the
/// registers of an SM hold; 2 on V100, as in the paper, which found it there
/// by heuristic search.
int64_t defaultZeta(const DeviceSpec &device);

/// Everything that a strategy may look at.
struct SearchProblem {
  const Workload &workload;
  const DeviceSpec &device;
  /// Codegen paths whose families compete. Those that do not support the
  /// workload offer none.
  llvm::ArrayRef<const CodegenModel *> paths;
  const CostModel &costModel;
  SearchOptions options;
  /// Families that must not be chosen, e.g. since ptxas spills their registers.
  std::vector<KernelFamily> rejected = {};
  /// Made on first use, see `evaluator`, `predictor` and `rankingEvaluator`;
  /// copies share them.
  mutable std::shared_ptr<CostEvaluator> madeEvaluator = nullptr;
  mutable std::shared_ptr<CostEvaluator> madePredictor = nullptr;
  mutable std::shared_ptr<CostEvaluator> madePrefilter = nullptr;

  int64_t zeta() const {
    return options.zeta ? options.zeta : defaultZeta(device);
  }
  bool isRejected(const KernelFamily &family) const;
  /// Names of the paths, separated by commas.
  std::string pathNames() const;
  /// The evaluator of the cost model. Workload, device, options and cost model
  /// stay as they are from the first use on.
  CostEvaluator &evaluator() const;
  /// The evaluator of the cost model if that predicts time, else of `latency`.
  CostEvaluator &predictor() const;
  /// The evaluator that sees every program of a search: of the cost model, or
  /// of its prefilter (`CostModel::prefilter`), whose best programs it orders
  /// anew (Reordering.h).
  CostEvaluator &rankingEvaluator() const;
  std::optional<Prefilter> prefilter() const {
    return costModel.prefilter(options.cost);
  }
  /// What a family's program for a shape (every extent ≥ 1) is ranked by at
  /// first.
  double score(const KernelFamily &family, llvm::ArrayRef<int64_t> shape) const;
  /// The cost model's score of it, and its parts.
  CostBreakdown evaluate(const KernelFamily &family,
                         llvm::ArrayRef<int64_t> shape) const;
  /// Predicted microseconds of a family's program for a shape, and their terms,
  /// whatever the cost model is. Where rows of the shape are not aligned for
  /// the family's accesses, it is priced with narrower ones.
  CostBreakdown predict(const KernelFamily &family,
                        llvm::ArrayRef<int64_t> shape) const;
  /// The scores of many such predictions, of a shape for each family.
  std::vector<double>
  predictEach(llvm::ArrayRef<const KernelFamily *> families,
              llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes) const;

  /// Says what is wrong with the problem itself (workload, options).
  llvm::Error check() const;
  /// Says why a plan, whoever wrote it, must not be run: a family without a
  /// correct kernel (`checkKernel`), an index or a box that does not fit, or
  /// vectors that would access operands which are not aligned for them.
  llvm::Error checkLegality(const Plan &plan) const;
  /// Proves the answer of a search: it is legal, its families are feasible, and
  /// every declared shape has an entry. For every extent, partitions write each
  /// row exactly once and pad only the last block (Partition.h).
  llvm::Error verify(const Plan &plan) const;
};

} // namespace ftuner

#endif // FTUNER_SEARCH_PROBLEM_SEARCHPROBLEM_H
