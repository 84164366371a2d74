//===- DietCodeBaselines.cpp - Peers of DietCode --------------------------===//
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
    // The copy of the result reads and writes only the elements that are kept.
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
  /// The smallest shape of the search's bucket; empty without buckets.
  Shape smallest;
  std::unique_ptr<DietCodeTuner> tuner;
  /// The best of the tuner's micro-kernels; no value if the path can emit none
  /// with tiles of the shape, or if none could be measured.
  std::optional<unsigned> best;
  /// Micro-kernels that were asked for.
  int64_t spent = 0;

  bool isBucket() const { return !smallest.empty(); }
  const TunedKernel &kernel() const { return tuner->kernels()[*best]; }
  /// Returns whether the family has as many blocks for every size of the
  /// bucket.
  bool mayHave(const KernelFamily &family) const {
    return !isBucket() || haveEqualGrids(family, smallest, shape.shape);
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

  /// Returns false if no search found a micro-kernel.
  llvm::Expected<bool> tune();
  /// Makes the plan of what `tune` found.
  llvm::Expected<Plan> plan(const std::string &measurer);

private:
  void chooseSearches(int64_t buckets);
  WeightedShape largest() const;
  /// Runs a search. Returns false if no kernel with tiles of that kind can be
  /// emitted, or if the search's share of trials is spent. If `isStrict`, every
  /// size of the search's bucket has as many blocks, and if sizes may break the
  /// alignment of accesses, a variant of the same tile serves these sizes.
  llvm::Expected<bool> tune(Search &search, bool onlyDivisors, bool isStrict);
  /// Returns for each search the search whose micro-kernel serves its shape.
  std::vector<unsigned> chooseKernels(size_t maxKernels);
  /// Returns the alignment in bytes that the best micro-kernels need.
  int64_t alignmentOfBest() const;
  /// Adds the families of the chosen searches to the plan, each once. Returns
  /// the family of each search's shape.
  std::vector<unsigned> addFamilies(llvm::ArrayRef<unsigned> chosen,
                                    Plan &plan);
  /// Returns one entry for each bucket: sizes up to the bucket's end.
  std::vector<DispatchEntry>
  bucketEntries(llvm::ArrayRef<unsigned> families) const;
  /// Adds families that serve operands without the alignment.
  llvm::Error serveUnaligned(int64_t alignment, Plan &plan);
  /// Gives the plan a general family with a single tile, if it has two.
  void dropGeneralTail(Plan &plan) const;
  void reportStatistics(const std::string &measurer, Plan &plan);
  /// Predicts the time of each instance; a kernel that was tuned for the
  /// instance's shape has the time that its search found.
  void predictInstances(Plan &plan) const;
  void reportCopies(Plan &plan);
  /// Returns the shape to which an instance is padded in device memory.
  Shape paddedShape(const Plan &plan, llvm::ArrayRef<int64_t> shape) const;
  /// Returns a variant for operands of any alignment of some micro-kernel that
  /// ran.
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
  /// Counts of all attempts, also of attempts without a result.
  DietCodeTuner::Counts counts;
  int64_t numPrograms = 0;
};
} // namespace

WeightedShape BaselineBuilder::largest() const {
  auto flops = [&](const WeightedShape &instance) {
    return workload.flops(workload.mainComputation(), instance.shape);
  };
  return *llvm::max_element(
      instances, [&](const WeightedShape &a, const WeightedShape &b) {
        return flops(a) < flops(b);
      });
}

void BaselineBuilder::chooseSearches(int64_t buckets) {
  if (mode == DietCodeMode::PerShape) {
    for (const WeightedShape &instance : instances)
      searches.push_back({instance, {}, nullptr, std::nullopt, 0});
    return;
  }
  WeightedShape largestInstance = largest();
  if (mode != DietCodeMode::Bucket) {
    searches.push_back({largestInstance, {}, nullptr, std::nullopt, 0});
    return;
  }
  unsigned mainAxis = workload.mainAxis();
  const Axis &axis = workload.axes[mainAxis];
  ShapeCell cell;
  cell.representative = largestInstance.shape;
  int64_t bucketStart = smallestSize(axis);
  for (int64_t end : bucketEnds(axis, buckets)) {
    searches.push_back({{shapeAt(workload, cell, mainAxis, end), 1},
                        shapeAt(workload, cell, mainAxis, bucketStart),
                        nullptr,
                        std::nullopt,
                        0});
    bucketStart = end + axis.range.step;
  }
}

/// Adds the counts of one search to a sum.
static void addCounts(const DietCodeTuner::Counts &counts,
                      DietCodeTuner::Counts &sum) {
  sum.drawn += counts.drawn;
  sum.rejectedByPath += counts.rejectedByPath;
  sum.predicted += counts.predicted;
  sum.measured += counts.measured;
  sum.failed += counts.failed;
  sum.rounds += counts.rounds;
  sum.verified += counts.verified;
  sum.revoted += counts.revoted;
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
    bool isBucket = search.isBucket();
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

std::vector<unsigned> BaselineBuilder::chooseKernels(size_t maxKernels) {
  // Searches with different micro-kernels, the first of each.
  std::vector<unsigned> owners;
  // The column of each search's own micro-kernel.
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
  // If there are enough kernels, each shape has its own micro-kernel; otherwise
  // shapes also vote for micro-kernels of other searches.
  VoteMatrix scores;
  for (auto [row, search] : llvm::enumerate(searches)) {
    std::vector<double> &rowScores = scores.emplace_back();
    bool isPadded = !search.best || search.mayHave(search.kernel().family);
    for (auto [column, owner] : llvm::enumerate(owners)) {
      const TunedKernel &kernel = searches[owner].kernel();
      bool isOut = owners.size() <= maxKernels && own[row]
                       ? own[row] != column
                       : isPadded && !search.mayHave(kernel.family);
      rowScores.push_back(
          isOut ? 0 : searches[owner].tuner->score(kernel, search.shape.shape));
    }
  }
  std::vector<std::optional<unsigned>> votes =
      chooseByVotes(scores, maxKernels);
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
    // If no kernel of the cover fits a bucket, the one that is best for the
    // bucket's end serves it.
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
  for (auto [extent, size] : llvm::zip_equal(padded, tile))
    extent = ceilBy(extent, size);
  return padded;
}

void BaselineBuilder::reportCopies(Plan &plan) {
  double bytes = 0, time = 0, weights = 0;
  for (const WeightedShape &instance : instances) {
    PaddingCopies copies = paddingCopies(workload, instance.shape,
                                         paddedShape(plan, instance.shape));
    bytes += instance.weight * copies.bytes;
    time += instance.weight * copies.microseconds(problem);
    weights += instance.weight;
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

int64_t BaselineBuilder::alignmentOfBest() const {
  int64_t alignment = 1;
  for (const Search &search : searches)
    if (search.best)
      alignment = std::max(alignment, search.kernel().family.alignment());
  return alignment;
}

std::vector<unsigned>
BaselineBuilder::addFamilies(llvm::ArrayRef<unsigned> chosen, Plan &plan) {
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
  return families;
}

std::vector<DispatchEntry>
BaselineBuilder::bucketEntries(llvm::ArrayRef<unsigned> families) const {
  std::vector<DispatchEntry> entries;
  unsigned mainAxis = workload.mainAxis();
  for (auto [index, search] : llvm::enumerate(searches)) {
    DispatchEntry entry{wholeSpace(workload), families[index]};
    SizeRange &sizes = entry.box[mainAxis];
    if (index > 0)
      sizes.min = searches[index - 1].shape.shape[mainAxis] + 1;
    if (index + 1 < searches.size())
      sizes.max = search.shape.shape[mainAxis];
    entries.push_back(std::move(entry));
  }
  return entries;
}

llvm::Error BaselineBuilder::serveUnaligned(int64_t alignment, Plan &plan) {
  if (alignment <= 1)
    return llvm::Error::success();
  if (problem.options.maxKernels > 1)
    return addUnalignedFamilies(problem, alignment, plan,
                                [&] { return anyUnaligned(); });
  // A plan with a single kernel needs one that takes operands of any alignment.
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
  return llvm::Error::success();
}

void BaselineBuilder::dropGeneralTail(Plan &plan) const {
  KernelFamily &general = plan.families[plan.unalignedGeneralFamily];
  if (general.tiles.size() == 1)
    return;
  // Sizes that no entry has run full tiles with padding.
  KernelFamily single = general;
  single.tiles.erase(single.tiles.begin());
  if (static_cast<int64_t>(plan.families.size()) < problem.options.maxKernels) {
    plan.unalignedGeneralFamily = plan.families.size();
    plan.families.push_back(std::move(single));
  } else {
    general = std::move(single);
  }
}

void BaselineBuilder::reportStatistics(const std::string &measurer,
                                       Plan &plan) {
  size_t numKernels = 0;
  for (const Search &search : searches)
    numKernels += search.tuner->kernels().size();
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
}

void BaselineBuilder::predictInstances(Plan &plan) const {
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
}

llvm::Expected<Plan> BaselineBuilder::plan(const std::string &measurer) {
  int64_t alignment = alignmentOfBest();
  std::vector<unsigned> chosen =
      chooseKernels(static_cast<size_t>(maxAlignedKernels(problem, alignment)));
  Plan plan;
  std::vector<unsigned> families = addFamilies(chosen, plan);
  if (mode == DietCodeMode::Bucket) {
    plan.entries = bucketEntries(families);
  } else {
    std::vector<VotedShape> voted;
    for (auto [search, family] : llvm::zip_equal(searches, families))
      voted.push_back({search.shape.shape, search.shape.weight, family});
    plan.entries = boxesOfVotes(voted, wholeSpace(workload));
  }
  plan.generalFamily = plan.unalignedGeneralFamily = families.back();
  if (llvm::Error error = serveUnaligned(alignment, plan))
    return error;
  dropGeneralTail(plan);
  reportStatistics(measurer, plan);
  predictInstances(plan);
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
