//===- Reordering.cpp - A slow cost model after a fast one ----------------===//
#include "FTuner/Search/Ranking/Reordering.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace ftuner;

/// Minimum distance between the best program that the model saw and a program
/// that it did not see, as a share. It is so small that it only decides ties.
static constexpr double kUnseenShare = 1e-9;

double ReorderedPrograms::score(const Program &program,
                                double byPrefilter) const {
  auto it = scores.find(programNumbers(program));
  if (it != scores.end())
    return it->second;
  return std::min(byPrefilter * ratio, best * (1 + kUnseenShare));
}

void ftuner::reorder(const FamilyTable &table, const SearchProblem &problem,
                     const Prefilter &prefilter, RankedShape &ranked) {
  auto programOf = [&](const RankedFamily &program) {
    const KernelFamily &family = table.families[program.family];
    return Program{&family, partitionShape(family, ranked.shape)};
  };
  auto reordered = std::make_shared<ReorderedPrograms>();
  std::vector<Program> programs;
  std::vector<double *> places;
  std::vector<double> before;
  for (const RankedFamily &rated : ranked.programs) {
    if (static_cast<int64_t>(programs.size()) == prefilter.programs)
      break;
    Program program = programOf(rated);
    auto [it, isNew] =
        reordered->scores.try_emplace(programNumbers(program), 0.0);
    if (!isNew)
      continue;
    programs.push_back(program);
    places.push_back(&it->second);
    before.push_back(rated.score);
  }
  if (programs.empty())
    return;
  std::vector<const FamilyCosts *> costs(programs.size(), nullptr);
  std::vector<double> scores(programs.size());
  problem.evaluator().scoreAll(programs, costs, ranked.shape, scores);
  std::vector<double> ratios;
  for (auto [place, score, old] : llvm::zip_equal(places, scores, before)) {
    *place = score;
    ratios.push_back(score / old);
  }
  reordered->best = *llvm::max_element(scores);
  auto middle = ratios.begin() + ratios.size() / 2;
  std::nth_element(ratios.begin(), middle, ratios.end());
  reordered->ratio = *middle;
  for (RankedFamily &rated : ranked.programs)
    rated.score = reordered->score(programOf(rated), rated.score);
  sortByScore(ranked.programs);
  ranked.reordered = std::move(reordered);
}
