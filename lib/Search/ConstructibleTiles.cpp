//===- ConstructibleTiles.cpp - What tiles are constructed of -------------===//
#include "ConstructibleTiles.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace ftuner;

llvm::Expected<CandidateSet> ftuner::enumerateConstructibleTiles(
    const SearchProblem &problem,
    llvm::function_ref<bool(const Candidate &)> isAllowed) {
  const CostModel &ofDepth = problem.costModel.predictsTime()
                                 ? problem.costModel
                                 : *findCostModel("sia-program");
  SearchProblem aligned{problem.workload, problem.device,  problem.paths,
                        ofDepth,          problem.options, problem.rejected};
  aligned.options.tileRule = TileRule::Aligned;
  aligned.options.batchTiles = false;
  llvm::Expected<CandidateSet> set = enumerateCandidates(aligned);
  if (!set)
    return set.takeError();
  ContractionAxes axes = ContractionAxes::of(problem.workload.reduceAxes());
  llvm::erase_if(set->candidates, [&](const Candidate &candidate) {
    const BlockTile &reg = candidate.ukernel.registerTile;
    return !llvm::isPowerOf2_64(reg[axes.m]) ||
           !llvm::isPowerOf2_64(reg[axes.n]) || !isAllowed(candidate);
  });
  if (set->candidates.empty())
    return llvm::createStringError(
        "found no uKernel with aligned tiles for workload '" +
        problem.workload.name + "' on device '" + problem.device.name + "'");
  return set;
}
