//===- SinglePrograms.cpp - Programs of one uKernel by a model ------------===//
#include "FTuner/Baselines/SinglePrograms.h"

using namespace ftuner;

namespace {
class SingleRanker final : public ProgramRanker {
public:
  SingleRanker(const SearchProblem &problem, CandidateSet candidates,
               llvm::StringRef strategy)
      : ProgramRanker(problem, std::move(candidates)), strategy(strategy) {
    for (unsigned i = 0; i < set.candidates.size(); ++i)
      if (std::optional<unsigned> family = table.single(i))
        families.push_back(*family);
  }

  llvm::Expected<RankedShape> rank(llvm::ArrayRef<int64_t> shape) override {
    if (families.empty())
      return llvm::createStringError("every uKernel of workload '" +
                                     problem.workload.name + "' was rejected");
    return rankByScore(table, families, shape);
  }

  void report(llvm::ArrayRef<RankedShape> samples, Plan &plan) const override {
    plan.statistics.push_back(
        {"programs", static_cast<double>(countRated(samples))});
    plan.remarks.push_back(
        ("strategy '" + strategy +
         "' constructs no tiles for this workload on these codegen paths; the "
         "cost model '" +
         problem.costModel.name() + "' ranks all uKernels")
            .str());
  }

private:
  std::vector<unsigned> families;
  llvm::StringRef strategy;
};
} // namespace

llvm::Expected<std::unique_ptr<ProgramRanker>>
ftuner::rankSinglePrograms(const SearchProblem &problem,
                           llvm::StringRef strategy) {
  llvm::Expected<CandidateSet> set = enumerateCandidates(problem);
  if (!set)
    return set.takeError();
  return std::make_unique<SingleRanker>(problem, std::move(*set), strategy);
}
