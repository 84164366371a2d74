//===- SearchStrategy.h - Problem, solvers and checker ----------*- C++ -*-===//
//
// Always the same three steps: the problem checks itself, a strategy solves it,
// the problem verifies the answer, whoever solved it (`solve`).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_SEARCHSTRATEGY_H
#define FTUNER_SEARCH_SEARCHSTRATEGY_H

#include "FTuner/Codegen/CodegenModel.h"
#include "FTuner/CostModel/CostModel.h"
#include "FTuner/Search/Plan.h"

namespace ftuner {

/// Hyper-parameters under the paper's names (section IV), and the bounds that
/// keep the number of candidates and of kernels small.
struct SearchOptions {
  /// Padding threshold ε: from epsilonMin to epsilonMax by epsilonStep.
  double epsilonMin = 0.50, epsilonMax = 0.95, epsilonStep = 0.01;
  /// Occupancy threshold λ: from lambdaMax down to lambdaMin by lambdaStep.
  double lambdaMax = 0.95, lambdaMin = 0.90, lambdaStep = 0.001;
  /// Active blocks per SM that SetBound allows (ζ).
  int64_t zeta = 2;
  /// Least share of the shape's best compute-to-memory ratio (ψ, relative).
  double psi = 0.5;
  /// Blocks per SM that saturate the device (ACTIVE_BLOCK_PER_SM).
  int64_t activeBlocksPerSm = 2;
  CostModelOptions cost;
  /// Programs wanted for each shape. Checked; strategies keep one so far.
  int64_t topK = 1;
  /// Most kernel families of one workload, the fallback ones included.
  int64_t maxKernels = 16;
  /// Most candidates for each shape after the filter.
  int64_t maxCandidates = 256;

  /// Says which figure is out of its range, whatever the workload is.
  llvm::Error check() const;
};

/// Everything that a strategy may look at.
struct SearchProblem {
  const Workload &workload;
  const DeviceSpec &device;
  const CodegenModel &codegen;
  const CostModel &costModel;
  SearchOptions options;

  /// Says what is wrong with the problem itself (workload, options).
  llvm::Error check() const;
  /// Proves the answer: every family can be emitted and respects the device's
  /// limits; every shape of the declared ranges (and beyond) has a family; and
  /// for every extent of the combine axis the cover writes each row exactly
  /// once and none outside beyond the stated local padding.
  llvm::Error verify(const Plan &plan) const;
};

class SearchStrategy {
public:
  virtual ~SearchStrategy() = default;
  virtual llvm::StringRef name() const = 0;
  virtual llvm::Expected<Plan> search(const SearchProblem &problem) const = 0;
};

/// check, search, verify.
llvm::Expected<Plan> solve(const SearchProblem &problem,
                           const SearchStrategy &strategy);

const SearchStrategy *findSearchStrategy(llvm::StringRef name);
llvm::ArrayRef<const SearchStrategy *> searchStrategies();

} // namespace ftuner

#endif // FTUNER_SEARCH_SEARCHSTRATEGY_H
