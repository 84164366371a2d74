//===- DietCodeBaselines.cpp - What DietCode is compared with -------------===//
#include "DietCodeBaselines.h"
#include "DietCodePlan.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Search/Ranking/Candidates.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <set>

using namespace ftuner;

//===----------------------------------------------------------------------===//
// Buckets, partitioned loops, copies
//===----------------------------------------------------------------------===//

std::vector<int64_t> ftuner::bucketEnds(const Axis &axis, int64_t count) {
  std::vector<int64_t> ends;
  std::optional<int64_t> all = axis.range.count();
  if (!all) {
    for (const SizeSample &sample :
         sampleSizes(axis, std::max<int64_t>(count, 2)))
      ends.push_back(sample.size);
    return ends;
  }
  int64_t width = ceilDiv(*all, count);
  for (int64_t last = std::min(width, *all);; last += width) {
    last = std::min(last, *all);
    ends.push_back(
        std::max<int64_t>(1, axis.range.min + (last - 1) * axis.range.step));
    if (last == *all)
      return ends;
  }
}

bool ftuner::haveEqualGrids(const KernelFamily &family,
                            llvm::ArrayRef<int64_t> a,
                            llvm::ArrayRef<int64_t> b) {
  for (auto [axis, tile] : llvm::enumerate(family.tiles.front()))
    if (!family.isReduceAxis(axis) &&
        ceilDiv(a[axis], tile) != ceilDiv(b[axis], tile))
      return false;
  return true;
}

std::optional<KernelFamily>
ftuner::withPartitionedLoop(const SearchProblem &problem,
                            const KernelFamily &family) {
  unsigned axis = problem.workload.mainAxis();
  auto space = family.path().createSpace(problem.workload, problem.device);
  if (!llvm::is_contained(space->combineAxes, axis))
    return std::nullopt;
  KernelFamily pair = family;
  pair.combineAxis = axis;
  int64_t granule = family.path().heightGranule(pair);
  BlockTile low = family.tiles.front();
  for (low[axis] = granule; low[axis] < family.tiles.front()[axis];
       low[axis] += granule) {
    pair.tiles = {low, family.tiles.front()};
    if (!problem.isRejected(pair) && isFeasible(problem, pair))
      return pair;
  }
  return std::nullopt;
}

double PaddingCopies::microseconds(const SearchProblem &problem) const {
  double launch = problem.options.cost.calibration.constants.launch;
  return static_cast<double>(kernels) * launch +
         bytes / (problem.device.dramGbps * 1e3);
}

PaddingCopies ftuner::paddingCopies(const Workload &workload,
                                    llvm::ArrayRef<int64_t> shape,
                                    llvm::ArrayRef<int64_t> padded) {
  PaddingCopies copies;
  for (const Operand &operand : workload.operands) {
    double before = workload.elements(operand, shape);
    double after = workload.elements(operand, padded);
    if (operand.role == OperandRole::Init || before == after)
      continue;
    ++copies.kernels;
    // Of the result, what is kept is read and written.
    double moved =
        operand.role == OperandRole::Output ? 2 * before : before + after;
    copies.bytes += moved * static_cast<double>(operand.elementBytes);
  }
  return copies;
}

//===----------------------------------------------------------------------===//
// Searches
//===----------------------------------------------------------------------===//

namespace {
/// A search for one shape, and what it found.
struct Search {
  WeightedShape shape;
  /// The least shape of its bucket; empty without buckets.
  Shape least;
  std::unique_ptr<DietCodeTuner> tuner;
  /// The best of the tuner's micro-kernels; no value if the path can emit none
  /// with tiles of the shape, or if none could be measured.
  std::optional<unsigned> best;
  /// Micro-kernels that were asked for.
  int64_t spent = 0;

  const TunedKernel &kernel() const { return tuner->kernels()[*best]; }
  bool mayHave(const KernelFamily &family) const {
    return least.empty() || haveEqualGrids(family, least, shape.shape);
  }
};

class BaselineBuilder {
public:
  BaselineBuilder(const SearchProblem &problem, DietCodeMode mode,
                  int64_t buckets, std::vector<WeightedShape> instances,
                  DietCodeBaseline::TunerFactory makeTuner)
      : problem(problem), workload(problem.workload), mode(mode),
        instances(std::move(instances)), makeTuner(makeTuner),
        mayBreakAlignment(guaranteedAlignment(workload) <
                          reachableAlignment(workload)) {
    chooseSearches(buckets);
  }

  /// False where no search found a micro-kernel.
  llvm::Expected<bool> tune();
  llvm::Expected<Plan> plan(const std::string &measurer);

private:
  void chooseSearches(int64_t buckets);
  WeightedShape largest() const;
  /// False where nothing can be emitted, with tiles of that kind, or the
  /// search's share is spent. `isStrict`:
  /// each size of the search's bucket has as many blocks, and where sizes break
  /// the alignment of accesses there is a variant of the same tile for them.
  llvm::Expected<bool> tune(Search &search, bool onlyDivisors, bool isStrict);
  /// Returns for each search the search whose micro-kernel serves its shape.
  std::vector<unsigned> chooseKernels(size_t most);
  void reportCopies(Plan &plan);
  /// Returns the shape to which an instance is padded in device memory.
  Shape paddedShape(const Plan &plan, llvm::ArrayRef<int64_t> shape) const;
  std::optional<KernelFamily> anyUnaligned() const;

  const SearchProblem &problem;
  const Workload &workload;
  const DietCodeMode mode;
  const std::vector<WeightedShape> instances;
  DietCodeBaseline::TunerFactory makeTuner;
  /// True if sizes may be such that rows are not aligned for wide accesses.
  const bool mayBreakAlignment;
  std::vector<Search> searches;
  int64_t withoutDivisors = 0, notPadded = 0, shared = 0, partitioned = 0,
          notFound = 0;
  /// Counts, those of attempts without a result included.
  DietCodeTuner::Counts counts;
  int64_t numPrograms = 0;
};
} // namespace

WeightedShape BaselineBuilder::largest() const {
  auto flops = [&](const WeightedShape &of) {
    return workload.flops(*workload.reduction(), of.shape);
  };
  return *llvm::max_element(
      instances, [&](const WeightedShape &a, const WeightedShape &b) {
        return flops(a) < flops(b);
      });
}

void BaselineBuilder::chooseSearches(int64_t buckets) {
  if (mode == DietCodeMode::PerShape) {
    for (const WeightedShape &of : instances)
      searches.push_back({of, {}, nullptr, std::nullopt, 0});
    return;
  }
  WeightedShape most = largest();
  if (mode != DietCodeMode::Bucket) {
    searches.push_back({most, {}, nullptr, std::nullopt, 0});
    return;
  }
  unsigned mainAxis = workload.mainAxis();
  const Axis &axis = workload.axes[mainAxis];
  ShapeCell cell;
  cell.representative = most.shape;
  int64_t least = smallestSize(axis);
  for (int64_t end : bucketEnds(axis, buckets)) {
    searches.push_back({{shapeAt(workload, cell, mainAxis, end), 1},
                        shapeAt(workload, cell, mainAxis, least),
                        nullptr,
                        std::nullopt,
                        0});
    least = end + axis.range.step;
  }
}

/// Adds what one search counted.
static void addCounts(const DietCodeTuner::Counts &of,
                      DietCodeTuner::Counts &sum) {
  sum.drawn += of.drawn;
  sum.rejectedByPath += of.rejectedByPath;
  sum.predicted += of.predicted;
  sum.measured += of.measured;
  sum.failed += of.failed;
  sum.rounds += of.rounds;
  sum.verified += of.verified;
  sum.revoted += of.revoted;
}

/// Returns whether operands of any alignment have a variant of the same blocks.
static bool hasUnalignedVariant(const SearchProblem &problem,
                                const KernelFamily &family) {
  std::optional<KernelFamily> variant = unalignedOf(problem, family);
  return variant &&
         llvm::all_of(llvm::seq<unsigned>(0, family.tiles.front().size()),
                      [&](unsigned axis) {
                        return family.isReduceAxis(axis) ||
                               variant->tiles.front()[axis] ==
                                   family.tiles.front()[axis];
                      });
}

llvm::Expected<bool> BaselineBuilder::tune(Search &search, bool onlyDivisors,
                                           bool isStrict) {
  auto tuner =
      makeTuner(search.shape, onlyDivisors, searches.size(), search.spent);
  if (!tuner)
    return false;
  search.tuner = std::move(tuner);
  if (isStrict)
    search.tuner->admits = [this, &search](const KernelFamily &family) {
      return search.mayHave(family) &&
             (!mayBreakAlignment || hasUnalignedVariant(problem, family));
    };
  if (llvm::Error error = search.tuner->run())
    return error;
  search.tuner->admits = nullptr;
  bool isFound = !search.tuner->kernels().empty();
  if (isFound) {
    llvm::Expected<std::vector<unsigned>> chosen = search.tuner->choose(1);
    if (!chosen)
      return chosen.takeError();
    search.best = chosen->front();
  }
  addCounts(search.tuner->counts, counts);
  search.spent += search.tuner->numAsked();
  numPrograms += search.tuner->numPrograms();
  return isFound;
}

llvm::Expected<bool> BaselineBuilder::tune() {
  for (Search &search : searches) {
    bool isBucket = !search.least.empty();
    // Buckets would rather have any tiles than compute less than their ends,
    // others rather divisors than a variant of the same tile.
    struct Attempt {
      bool onlyDivisors, isStrict;
    } attempts[] = {{true, true},
                    {!isBucket, isBucket},
                    {isBucket, !isBucket},
                    {false, false}};
    bool isFound = false;
    for (auto [onlyDivisors, isStrict] : attempts) {
      if (isStrict && !isBucket && !mayBreakAlignment)
        continue;
      llvm::Expected<bool> found = tune(search, onlyDivisors, isStrict);
      if (!found)
        return found.takeError();
      if (!*found)
        continue;
      isFound = true;
      withoutDivisors += !onlyDivisors;
      notPadded += isBucket && !isStrict;
      break;
    }
    notFound += !isFound;
  }
  return notFound < static_cast<int64_t>(searches.size());
}

std::vector<unsigned> BaselineBuilder::chooseKernels(size_t most) {
  // Searches with different micro-kernels, the first of each.
  std::vector<unsigned> owners;
  // The column of each search's own.
  std::vector<std::optional<unsigned>> own;
  for (unsigned index = 0; index < searches.size(); ++index) {
    const Search &search = searches[index];
    std::optional<unsigned> &column = own.emplace_back();
    if (!search.best)
      continue;
    auto it = llvm::find_if(owners, [&](unsigned owner) {
      return searches[owner].kernel().family == search.kernel().family;
    });
    column = it - owners.begin();
    if (it == owners.end())
      owners.push_back(index);
  }
  // Where there are enough, each has its own; else shapes vote for those of
  // others, too.
  VoteMatrix scores;
  for (auto [row, search] : llvm::enumerate(searches)) {
    std::vector<double> &rowScores = scores.emplace_back();
    bool isPadded = !search.best || search.mayHave(search.kernel().family);
    for (auto [column, owner] : llvm::enumerate(owners)) {
      const TunedKernel &kernel = searches[owner].kernel();
      bool isOut = owners.size() <= most && own[row]
                       ? own[row] != column
                       : isPadded && !search.mayHave(kernel.family);
      rowScores.push_back(
          isOut ? 0 : searches[owner].tuner->score(kernel, search.shape.shape));
    }
  }
  std::vector<std::optional<unsigned>> votes = chooseByVotes(scores, most);
  std::set<unsigned> cover;
  for (std::optional<unsigned> vote : votes)
    if (vote)
      cover.insert(*vote);
  if (cover.empty())
    cover.insert(owners.size() - 1);
  std::vector<unsigned> chosen;
  for (size_t row = 0; row < votes.size(); ++row) {
    auto scoreOf = [&](unsigned column) {
      const Search &owner = searches[owners[column]];
      return owner.tuner->score(owner.kernel(), searches[row].shape.shape);
    };
    // Where none of the few fits a bucket, the best of them for its end.
    notPadded += !votes[row].has_value();
    unsigned column =
        votes[row] ? *votes[row]
                   : *llvm::max_element(cover, [&](unsigned a, unsigned b) {
                       return scoreOf(a) < scoreOf(b);
                     });
    shared += own[row] != column;
    chosen.push_back(owners[column]);
  }
  return chosen;
}

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

Shape BaselineBuilder::paddedShape(const Plan &plan,
                                   llvm::ArrayRef<int64_t> shape) const {
  Shape padded(shape);
  if (mode == DietCodeMode::Bucket) {
    unsigned mainAxis = workload.mainAxis();
    ShapeCell cell;
    cell.representative = padded;
    for (const Search &search : searches)
      if (shape[mainAxis] <= search.shape.shape[mainAxis])
        return shapeAt(workload, cell, mainAxis, search.shape.shape[mainAxis]);
    return padded;
  }
  const BlockTile &tile = plan.families[plan.generalFamily].tiles.back();
  for (auto [extent, along] : llvm::zip_equal(padded, tile))
    extent = ceilBy(extent, along);
  return padded;
}

void BaselineBuilder::reportCopies(Plan &plan) {
  double bytes = 0, time = 0, weights = 0;
  for (const WeightedShape &of : instances) {
    PaddingCopies copies =
        paddingCopies(workload, of.shape, paddedShape(plan, of.shape));
    bytes += of.weight * copies.bytes;
    time += of.weight * copies.microseconds(problem);
    weights += of.weight;
  }
  plan.statistics.push_back({"copied_bytes", bytes / weights});
  plan.statistics.push_back({"copies_us", time / weights});
  plan.remarks.push_back(
      "copies that pad operands and slice the result are no part of the plan "
      "and of predicted times: statistic 'copies_us' has their price");
}

std::optional<KernelFamily> BaselineBuilder::anyUnaligned() const {
  for (const Search &search : searches)
    for (const TunedKernel &kernel : search.tuner->kernels())
      if (!kernel.runs.empty())
        if (auto variant = unalignedOf(problem, kernel.family))
          return variant;
  return std::nullopt;
}

llvm::Expected<Plan> BaselineBuilder::plan(const std::string &measurer) {
  int64_t alignment = 1;
  size_t numKernels = 0;
  for (const Search &search : searches) {
    if (search.best)
      alignment = std::max(alignment, search.kernel().family.alignment());
    numKernels += search.tuner->kernels().size();
  }
  auto most = static_cast<size_t>(mostAligned(problem, alignment));
  std::vector<unsigned> chosen = chooseKernels(most);
  Plan plan;
  std::vector<unsigned> families;
  for (unsigned owner : chosen) {
    KernelFamily family = searches[owner].kernel().family;
    if (mode == DietCodeMode::LoopPartitioning)
      if (auto pair = withPartitionedLoop(problem, family)) {
        family = std::move(*pair);
        ++partitioned;
      }
    auto it = llvm::find(plan.families, family);
    families.push_back(it - plan.families.begin());
    if (it == plan.families.end())
      plan.families.push_back(std::move(family));
  }
  std::vector<SizeRange> space = wholeSpace(workload);
  unsigned mainAxis = workload.mainAxis();
  if (mode == DietCodeMode::Bucket) {
    for (auto [index, search] : llvm::enumerate(searches)) {
      DispatchEntry entry{space, families[index]};
      SizeRange &along = entry.box[mainAxis];
      if (index > 0)
        along.min = searches[index - 1].shape.shape[mainAxis] + 1;
      if (index + 1 < searches.size())
        along.max = search.shape.shape[mainAxis];
      plan.entries.push_back(std::move(entry));
    }
  } else {
    std::vector<VotedShape> voted;
    for (auto [search, family] : llvm::zip_equal(searches, families))
      voted.push_back({search.shape.shape, search.shape.weight, family});
    plan.entries = boxesOfVotes(voted, std::move(space));
  }
  plan.generalFamily = plan.unalignedGeneralFamily = families.back();
  if (alignment > 1 && problem.options.maxKernels == 1) {
    // A single kernel has to do, for operands of any alignment.
    std::optional<KernelFamily> variant =
        unalignedOf(problem, plan.families.front());
    if (!variant)
      variant = anyUnaligned();
    if (!variant)
      return llvm::createStringError(
          "strategy 'dietcode': none of the micro-kernels of workload '" +
          workload.name + "' takes operands of any alignment");
    plan.families = {std::move(*variant)};
    plan.generalFamily = plan.unalignedGeneralFamily = 0;
    for (DispatchEntry &entry : plan.entries)
      entry.family = 0;
  } else if (alignment > 1) {
    if (llvm::Error error = addUnalignedFamilies(
            problem, alignment, plan, [&] { return anyUnaligned(); }))
      return error;
  }
  // What has no size at all: full tiles, and padding.
  if (KernelFamily &general = plan.families[plan.unalignedGeneralFamily];
      general.tiles.size() > 1) {
    KernelFamily single = general;
    single.tiles.erase(single.tiles.begin());
    if (static_cast<int64_t>(plan.families.size()) <
        problem.options.maxKernels) {
      plan.unalignedGeneralFamily = plan.families.size();
      plan.families.push_back(std::move(single));
    } else {
      general = std::move(single);
    }
  }
  reportTuning(problem, counts, instances.size(), numKernels, numPrograms,
               measurer, plan);
  auto add = [&](llvm::StringRef name, auto value) {
    plan.statistics.push_back({name.str(), static_cast<double>(value)});
  };
  add("searches", searches.size());
  add("without_divisors", withoutDivisors);
  add("not_found", notFound);
  add("shared", shared);
  if (mode == DietCodeMode::Bucket)
    add("not_padded", notPadded);
  if (mode == DietCodeMode::LoopPartitioning)
    add("partitioned", partitioned);
  if (mode == DietCodeMode::Bucket || mode == DietCodeMode::GlobalPadding)
    reportCopies(plan);
  add("families", plan.families.size());
  if (notPadded > 0)
    plan.remarks.push_back("no micro-kernel of some buckets has as many blocks "
                           "for all of their sizes: these compute less than "
                           "the bucket's end");
  predictShapes(
      problem, plan, instances,
      [&](size_t index, const KernelFamily &family) -> std::optional<double> {
        for (const Search &search : searches)
          if (search.best && search.shape.shape == instances[index].shape &&
              search.kernel().family == family)
            return search.tuner->microseconds(search.shape.shape,
                                              {*search.best, false});
        return std::nullopt;
      });
  return plan;
}

//===----------------------------------------------------------------------===//
// Ranker
//===----------------------------------------------------------------------===//

llvm::Expected<std::unique_ptr<DietCodeBaseline>>
DietCodeBaseline::create(const SearchProblem &problem, DietCodeMode mode,
                         int64_t buckets, std::vector<WeightedShape> instances,
                         std::unique_ptr<LoggingMeasurer> measurer,
                         TunerFactory makeTuner) {
  BaselineBuilder builder(problem, mode, buckets, std::move(instances),
                          makeTuner);
  llvm::Expected<bool> found = builder.tune();
  if (!found)
    return found.takeError();
  if (!*found)
    return nullptr;
  llvm::Expected<Plan> plan =
      builder.plan(measurer ? measurer->name().str() : std::string());
  if (!plan)
    return plan.takeError();
  CandidateSet set;
  for (const KernelFamily &family : plan->families) {
    set.alignment = std::max(set.alignment, family.alignment());
    set.candidates.push_back(
        {family, family.ukernel(0),
         family.path().resources(problem.workload, family)});
  }
  set.numAdded = static_cast<int64_t>(set.candidates.size());
  return std::unique_ptr<DietCodeBaseline>(
      new DietCodeBaseline(problem, std::move(set), std::move(*plan)));
}

llvm::Expected<RankedShape>
DietCodeBaseline::rank(llvm::ArrayRef<int64_t> shape) {
  std::optional<unsigned> family =
      table.single(plan.familyFor(shape, alignmentOf(problem.workload, shape)));
  if (!family)
    return llvm::createStringError("every micro-kernel of workload '" +
                                   problem.workload.name + "' was rejected");
  return rankByScore(table, *family, shape);
}

void DietCodeBaseline::describe(const RankedShape &ranked,
                                ShapeReport &report) {
  StageReport stage;
  stage.name = "micro_kernels";
  stage.requirement = plan.measurer.empty() ? "predicted in place of measured"
                                            : "measured by " + plan.measurer;
  for (const SearchStatistic &statistic : plan.statistics)
    if (statistic.name == "drawn")
      stage.before = static_cast<int64_t>(statistic.value);
  stage.kept = static_cast<int64_t>(plan.families.size());
  report.measurer = plan.measurer;
  report.stages = {stage};
}
