//===- FamilyTable.cpp - Families made of candidates ----------------------===//
#include "FamilyTable.h"
#include "llvm/ADT/STLExtras.h"
#include <map>
#include <tuple>

using namespace ftuner;

/// Two candidates differ in rows alone if everything here is equal.
static auto layoutKey(const KernelFamily &family) {
  BlockTile tile = family.tiles.front();
  tile[family.combineAxis] = 0;
  return std::make_tuple(&family.path(), family.combineAxis, tile,
                         family.reduceSplit, family.schedule.fields());
}

FamilyTable::FamilyTable(const SearchProblem &problem, const CandidateSet &set)
    : set(set), problem(problem),
      balances(problem.costModel.predictsTime() &&
               problem.options.pool != ProgramPool::Exact) {
  std::map<decltype(layoutKey(set.candidates.front().family)), unsigned>
      numbers;
  const CodegenModel *path = nullptr;
  for (auto [index, candidate] : llvm::enumerate(set.candidates)) {
    const KernelFamily &family = candidate.family;
    if (&family.path() != path) {
      path = &family.path();
      if (llvm::is_contained(
              path->createSpace(problem.workload, problem.device)->combineAxes,
              problem.workload.mainAxis()))
        combining.insert(path);
    }
    unsigned layout =
        numbers.try_emplace(layoutKey(family), numbers.size()).first->second;
    layouts.push_back(layout);
    granules.push_back(candidate.heightGranule());
    byRows.try_emplace({layout, rows(index)}, index);
  }
}

std::optional<unsigned> FamilyTable::withRows(unsigned candidate,
                                              int64_t rows) const {
  auto it = byRows.find({layouts[candidate], rows});
  if (it == byRows.end())
    return std::nullopt;
  return it->second;
}

double FamilyTable::score(unsigned family,
                          llvm::ArrayRef<int64_t> shape) const {
  Program program{&families[family], partitionShape(families[family], shape)};
  return problem.evaluator().scoreWith(costs[family], shape, program);
}

std::optional<unsigned> FamilyTable::add(KernelFamily family) {
  if (problem.isRejected(family))
    return std::nullopt;
  resources.push_back(family.path().resources(problem.workload, family));
  costs.push_back(problem.evaluator().costsOf(family));
  families.push_back(std::move(family));
  return families.size() - 1;
}

std::optional<unsigned> FamilyTable::single(unsigned candidate) {
  auto it = singles.find(candidate);
  if (it == singles.end())
    it = singles.insert({candidate, add(set.candidates[candidate].family)})
             .first;
  return it->second;
}

std::optional<unsigned> FamilyTable::pair(unsigned candidate,
                                          int64_t lowerRows) {
  const KernelFamily &higher = set.candidates[candidate].family;
  if (!combining.contains(&higher.path()) || lowerRows < 1 ||
      lowerRows >= rows(candidate))
    return std::nullopt;
  auto [it, isNew] = pairs.try_emplace({candidate, lowerRows}, std::nullopt);
  if (!isNew)
    return it->second;
  KernelFamily family = higher;
  BlockTile lower = family.tiles.front();
  lower[family.combineAxis] = granules[candidate] * lowerRows;
  family.tiles.insert(family.tiles.begin(), lower);
  if (balances)
    family.balancedSms = problem.device.smCount;
  if (!isFeasible(problem, family))
    return std::nullopt;
  return it->second = add(std::move(family));
}
