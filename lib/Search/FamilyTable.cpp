//===- FamilyTable.cpp - Families made of candidates ----------------------===//
#include "FamilyTable.h"
#include "llvm/ADT/STLExtras.h"

using namespace ftuner;

FamilyTable::FamilyTable(const SearchProblem &problem, const CandidateSet &set)
    : set(set), problem(problem), axis(set.prototype.combineAxis),
      balances(problem.costModel.predictsTime() &&
               problem.options.pool != ProgramPool::Exact) {
  TileGranules granules =
      problem.codegen.granules(problem.workload, problem.device);
  combines =
      llvm::is_contained(granules.combineAxes, problem.workload.mainAxis());
  // Two candidates differ in rows alone if everything else here is equal.
  std::map<std::array<int64_t, 5>, unsigned> numbers;
  unsigned other = axis == Workload::kM ? Workload::kN : Workload::kM;
  for (auto [index, candidate] : llvm::enumerate(set.candidates)) {
    const UKernel &u = candidate.ukernel;
    std::array<int64_t, 5> key = {u.threadsAlong(axis), u.smemTile[other],
                                  u.regTile[other], u.smemTile[Workload::kK],
                                  candidate.stages};
    unsigned layout = numbers.try_emplace(key, numbers.size()).first->second;
    layouts.push_back(layout);
    byRows.emplace(std::make_pair(layout, u.regTile[axis]), index);
  }
}

std::optional<unsigned> FamilyTable::withRows(unsigned candidate,
                                              int64_t rows) const {
  auto it = byRows.find({layouts[candidate], rows});
  if (it == byRows.end())
    return std::nullopt;
  return it->second;
}

std::optional<unsigned> FamilyTable::add(KernelFamily family) {
  if (problem.isRejected(family))
    return std::nullopt;
  resources.push_back(problem.codegen.resources(problem.workload, family));
  families.push_back(std::move(family));
  return families.size() - 1;
}

std::optional<unsigned> FamilyTable::single(unsigned candidate) {
  auto it = singles.find(candidate);
  if (it == singles.end())
    it = singles.insert({candidate, add(set.single(candidate))}).first;
  return it->second;
}

std::optional<unsigned> FamilyTable::pair(unsigned candidate,
                                          int64_t lowerRows) {
  if (!combines || lowerRows < 1 || lowerRows >= rows(candidate))
    return std::nullopt;
  auto [it, isNew] = pairs.try_emplace({candidate, lowerRows}, std::nullopt);
  if (!isNew)
    return it->second;
  KernelFamily family = set.single(candidate);
  UKernel lower = family.parts.front();
  lower.smemTile[axis] = lower.threadsAlong(axis) * lowerRows;
  lower.regTile[axis] = lowerRows;
  family.parts.insert(family.parts.begin(), lower);
  if (balances)
    family.balancedSms = problem.device.smCount;
  if (!isLegal(problem, family))
    return std::nullopt;
  return it->second = add(std::move(family));
}
