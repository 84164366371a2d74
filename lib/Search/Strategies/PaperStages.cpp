//===- PaperStages.cpp - The stages of algorithm 1 ------------------------===//
#include "FTuner/Search/Problem/SearchTuning.h"
#include "ShapeFilter.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>

using namespace ftuner;

Demands ftuner::runPaperStages(ShapeFilter &filter) {
  const SearchProblem &problem = filter.problem;
  const FilterOptions &options = filter.options;
  Demands demands;
  auto efficiency = [](const Survivor &s) {
    return s.metrics.pad * s.metrics.occ;
  };
  demands.crossPick = filter.apply(
      {CrossPick,
       [&](const Survivor &s) {
         return crossPickAccepts(options, s.metrics.pad, s.metrics.occ);
       },
       efficiency, "pad · occ", efficiency,
       [&] {
         std::string text;
         llvm::raw_string_ostream(text)
             << "pad ≥ ε and occ ≥ λ at a step from "
             << llvm::format("(%g, %g) by (+%g, −%g)", options.epsilonMin,
                             options.lambdaMax, options.epsilonStep,
                             options.lambdaStep);
         return text;
       }});

  auto share = [&](const Survivor &s) {
    return registerShare(problem, s.metrics, filter.candidate(s).resources);
  };
  demands.setBound = filter.apply(
      {SetBound, [&](const Survivor &s) { return share(s) <= 1; },
       [&](const Survivor &s) { return -share(s); }, "register share", share,
       [&] {
         return "registers of min(ceil(blocks / SMs), " +
                std::to_string(problem.zeta()) + ") blocks ≤ those of an SM";
       }});

  auto blocks = [](const Survivor &s) {
    return static_cast<double>(s.metrics.blocks);
  };
  double minBlocks = options.activeBlocksPerSm * problem.device.smCount;
  if (filter.apply({SpaceAxis,
                    [&](const Survivor &s) { return blocks(s) >= minBlocks; },
                    blocks, "blocks", blocks,
                    [&] { return atLeast("blocks", minBlocks); }}))
    demands.blocks = minBlocks;

  double minCmr = 0;
  for (const Survivor &survivor : filter.survivors)
    minCmr = std::max(minCmr, options.psi * survivor.metrics.cmr);
  demands.cmr = minCmr;
  auto cmr = [](const Survivor &s) { return s.metrics.cmr; };
  filter.apply({ReduceAxis, [&](const Survivor &s) { return cmr(s) >= minCmr; },
                cmr, "cmr", cmr, [&] { return atLeast("cmr", minCmr); }});

  if (options.reading == FilterReading::Paper)
    return demands;

  auto threads = [&](const Survivor &s) {
    return static_cast<double>(filter.candidate(s).resources.threads);
  };
  if (filter.apply({Warps,
                    [&](const Survivor &s) {
                      return threads(s) >= tuning::filterThreads;
                    },
                    threads, "threads", threads,
                    [&] { return atLeast("threads", tuning::filterThreads); }}))
    demands.threads = tuning::filterThreads;

  filter.keepParetoFronts(options.maxCandidates);
  return demands;
}
