//===- ConstructibleTiles.cpp - Tiles that a search constructs ------------===//
#include "FTuner/Baselines/ConstructibleTiles.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace ftuner;

namespace {
struct ConstructionOptions {
  RegisterTiles registers = RegisterTiles::Own;
};
} // namespace

static const OptionTable<ConstructionOptions> &registerTileOptions() {
  using Options = ConstructionOptions;
  static const OptionTable<ConstructionOptions> table = {
      option("register-tiles", &Options::registers,
             "Constructed register tiles are 'powers' of two along each axis, "
             "'any' size, or what the strategy's paper has ('own': powers for "
             "'roller', any for 'gensor')",
             {{"own", RegisterTiles::Own},
              {"powers", RegisterTiles::Powers},
              {"any", RegisterTiles::Any}}),
  };
  return table;
}

OptionDecls ftuner::constructionOptions() {
  return joined({tileRuleOptions().decls(), registerTileOptions().decls(),
                 zetaOptions().decls()});
}

llvm::Expected<CandidateSet> ftuner::enumerateConstructibleTiles(
    const SearchProblem &problem, RegisterTiles own,
    llvm::function_ref<bool(const Candidate &)> isAllowed) {
  const CostModel &ofDepth = problem.costModel.predictsTime()
                                 ? problem.costModel
                                 : *findCostModel("sia-program");
  SearchProblem aligned{problem.workload, problem.device,  problem.paths,
                        ofDepth,          problem.options, problem.rejected};
  aligned.options.batchTiles = aligned.options.slicedK = false;
  llvm::Expected<CandidateSet> set = enumerateCandidates(aligned);
  if (!set)
    return set.takeError();
  RegisterTiles registers =
      registerTileOptions().read(problem.options.own).registers;
  if (registers == RegisterTiles::Own)
    registers = own;
  ContractionAxes axes =
      ContractionAxes::forReduceAxes(problem.workload.reduceAxes());
  llvm::erase_if(set->candidates, [&](const Candidate &candidate) {
    const BlockTile &reg = candidate.ukernel.registerTile;
    bool isSuited =
        registers == RegisterTiles::Any ||
        (llvm::isPowerOf2_64(reg[axes.m]) && llvm::isPowerOf2_64(reg[axes.n]));
    return !isSuited || !isAllowed(candidate);
  });
  if (set->candidates.empty())
    return llvm::createStringError(
        "found no uKernel with aligned tiles for workload '" +
        problem.workload.name + "' on device '" + problem.device.name + "'");
  return set;
}
