//===- FamilyTable.cpp - Families made of candidates ----------------------===//
#include "FTuner/Search/Ranking/FamilyTable.h"
#include "FTuner/Search/Ranking/MainAxis.h"
#include "FTuner/Search/Ranking/SearchMemory.h"
#include "llvm/ADT/STLExtras.h"
#include <map>
#include <tuple>

using namespace ftuner;

/// Returns a key that is equal for candidates that differ only in rows.
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
      auto space = path->createSpace(problem.workload, problem.device);
      if (combinesAlongMainAxis(problem, *space))
        combining.insert(path);
      for (unsigned axis : space->combineAxes)
        if (axis != family.combineAxis)
          otherAxesOf[path].push_back(axis);
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
  return problem.rankingEvaluator().scoreWith(costs[family], shape, program);
}

std::vector<double> FamilyTable::scoreAll(llvm::ArrayRef<unsigned> numbers,
                                          llvm::ArrayRef<int64_t> shape) const {
  std::vector<Program> programs;
  std::vector<const FamilyCosts *> programCosts;
  programs.reserve(numbers.size());
  programCosts.reserve(numbers.size());
  for (unsigned number : numbers) {
    programs.push_back(
        {&families[number], partitionShape(families[number], shape)});
    programCosts.push_back(costs[number]);
  }
  std::vector<double> scores(numbers.size());
  problem.rankingEvaluator().scoreAll(programs, programCosts, shape, scores);
  return scores;
}

std::vector<double>
FamilyTable::scoreShapes(llvm::ArrayRef<unsigned> numbers,
                         llvm::ArrayRef<Shape> shapes) const {
  // Models that compute many scores at once get them in batches.
  constexpr size_t batchSize = 1024;
  size_t numShapes = shapes.size();
  std::vector<double> scores(numbers.size() * numShapes);
  ShapeScores *known =
      problem.memory ? &problem.memory->scoresFor(shapes) : nullptr;
  // Families of the batch, by their indices in `numbers`.
  std::vector<size_t> batch;
  std::vector<Program> programs;
  std::vector<llvm::ArrayRef<int64_t>> programShapes;
  std::vector<double> batchScores;
  auto scoreBatch = [&] {
    batchScores.resize(programs.size());
    problem.rankingEvaluator().scoreEach(programs, programShapes, batchScores);
    llvm::ArrayRef<double> left = batchScores;
    for (size_t index : batch) {
      llvm::ArrayRef<double> own = left.take_front(numShapes);
      left = left.drop_front(numShapes);
      llvm::copy(own, scores.begin() + index * numShapes);
      if (known)
        known->keep(memoryNumbers[numbers[index]], own);
    }
    batch.clear();
    programs.clear();
    programShapes.clear();
  };
  for (auto [index, number] : llvm::enumerate(numbers)) {
    const double *found = known ? known->find(memoryNumbers[number]) : nullptr;
    if (found) {
      std::copy_n(found, numShapes, scores.begin() + index * numShapes);
      continue;
    }
    batch.push_back(index);
    const KernelFamily &family = families[number];
    for (const Shape &shape : shapes)
      programs.push_back({&family, partitionShape(family, shape)});
    programShapes.insert(programShapes.end(), shapes.begin(), shapes.end());
    if (programs.size() >= batchSize)
      scoreBatch();
  }
  scoreBatch();
  return scores;
}

unsigned FamilyTable::runningNumber(unsigned family,
                                    const Partition &partition) const {
  unsigned parts =
      (partition.first > 0 ? 1 : 0) | (partition.second > 0 ? 2 : 0);
  auto [it, isNew] = runningNumbers.try_emplace({family, parts});
  if (isNew)
    it->second =
        runningTexts
            .try_emplace(runningParts(families[family], partition).str(),
                         runningTexts.size())
            .first->second;
  return it->second;
}

std::optional<unsigned> FamilyTable::add(KernelFamily family,
                                         unsigned candidate) {
  if (problem.isRejected(family))
    return std::nullopt;
  resources.push_back(family.path().resources(problem.workload, family));
  costs.push_back(problem.rankingEvaluator().costsOf(family));
  if (problem.memory)
    memoryNumbers.push_back(problem.memory->numberOf(family));
  families.push_back(std::move(family));
  owners.push_back(candidate);
  return families.size() - 1;
}

std::optional<unsigned> FamilyTable::single(unsigned candidate) {
  auto it = singles.find(candidate);
  if (it == singles.end())
    it = singles
             .insert(
                 {candidate, add(set.candidates[candidate].family, candidate)})
             .first;
  return it->second;
}

std::optional<unsigned> FamilyTable::pair(unsigned candidate,
                                          int64_t lowerRows) {
  const KernelFamily &higher = set.candidates[candidate].family;
  if (!combining.contains(&higher.path()))
    return std::nullopt;
  return pairAlong(higher.combineAxis, candidate, lowerRows);
}

std::optional<unsigned>
FamilyTable::pairAlong(unsigned axis, unsigned candidate, int64_t lowerRows) {
  if (lowerRows < 1 || lowerRows >= rowsAlong(axis, candidate))
    return std::nullopt;
  auto [it, isNew] =
      pairs.try_emplace({axis, candidate, lowerRows}, std::nullopt);
  if (!isNew)
    return it->second;
  KernelFamily family = set.candidates[candidate].family;
  family.combineAxis = axis;
  BlockTile lower = family.tiles.front();
  lower[axis] = granuleAlong(axis, candidate) * lowerRows;
  family.tiles.insert(family.tiles.begin(), lower);
  if (balances)
    family.balancedSms = problem.device.smCount;
  if (!isFeasible(problem, family))
    return std::nullopt;
  return it->second = add(std::move(family), candidate);
}

int64_t FamilyTable::granuleAlong(unsigned axis, unsigned candidate) const {
  const KernelFamily &family = set.candidates[candidate].family;
  if (axis == family.combineAxis)
    return granules[candidate];
  KernelFamily recombined = family;
  recombined.combineAxis = axis;
  return family.path().heightGranule(recombined);
}

int64_t FamilyTable::rowsAlong(unsigned axis, unsigned candidate) const {
  return set.candidates[candidate].family.tiles.front()[axis] /
         granuleAlong(axis, candidate);
}

llvm::ArrayRef<unsigned> FamilyTable::otherAxes(unsigned candidate) const {
  auto it = otherAxesOf.find(&set.candidates[candidate].family.path());
  return it == otherAxesOf.end() ? llvm::ArrayRef<unsigned>()
                                 : llvm::ArrayRef<unsigned>(it->second);
}
