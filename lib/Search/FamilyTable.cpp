//===- FamilyTable.cpp - Families made of candidates ----------------------===//
#include "FamilyTable.h"
#include "llvm/ADT/STLExtras.h"

using namespace ftuner;

FamilyTable::FamilyTable(const SearchProblem &problem, const CandidateSet &set)
    : problem(problem), set(set) {
  TileGranules granules =
      problem.codegen.granules(problem.workload, problem.device);
  combines =
      llvm::is_contained(granules.combineAxes, problem.workload.mainAxis());
  unsigned axis = set.prototype.combineAxis;
  for (auto [index, candidate] : llvm::enumerate(set.candidates))
    byLayout.emplace(key(candidate.ukernel, candidate.ukernel.regTile[axis]),
                     index);
}

FamilyTable::Key FamilyTable::key(const UKernel &ukernel,
                                  int64_t height) const {
  unsigned axis = set.prototype.combineAxis;
  unsigned other = axis == Workload::kM ? Workload::kN : Workload::kM;
  return {ukernel.threadsAlong(axis), ukernel.threadsAlong(other),
          ukernel.regTile[other], height, 0};
}

unsigned FamilyTable::add(KernelFamily family) {
  resources.push_back(problem.codegen.resources(problem.workload, family));
  families.push_back(std::move(family));
  return families.size() - 1;
}

unsigned FamilyTable::single(unsigned candidate) {
  auto [it, inserted] = singles.try_emplace(candidate, 0);
  if (inserted)
    it->second = add(set.single(candidate));
  return it->second;
}

unsigned FamilyTable::pairWithLower(unsigned candidate) {
  auto it = pairs.find(candidate);
  if (it != pairs.end())
    return it->second;
  KernelFamily family = set.single(candidate);
  unsigned axis = family.combineAxis;
  UKernel lower = family.parts.front();
  int64_t height = lower.regTile[axis];
  bool isPair = false;
  if (combines && height > 1) {
    lower.smemTile[axis] = lower.threadsAlong(axis) * (height - 1);
    lower.regTile[axis] = height - 1;
    family.parts.insert(family.parts.begin(), lower);
    llvm::Error error = checkFamily(problem, family);
    isPair = !error;
    llvm::consumeError(std::move(error));
  }
  unsigned index = isPair ? add(std::move(family)) : single(candidate);
  pairs[candidate] = index;
  return index;
}

std::optional<unsigned> FamilyTable::pairWithHigher(unsigned candidate) {
  const UKernel &ukernel = set.candidates[candidate].ukernel;
  int64_t height = ukernel.regTile[set.prototype.combineAxis];
  auto it = byLayout.find(key(ukernel, height + 1));
  if (it == byLayout.end())
    return std::nullopt;
  unsigned index = pairWithLower(it->second);
  if (families[index].parts.size() != 2)
    return std::nullopt;
  return index;
}
