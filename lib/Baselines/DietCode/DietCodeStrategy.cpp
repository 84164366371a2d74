//===- DietCodeStrategy.cpp - DietCode as a baseline ----------------------===//
//
// One search for some shapes of a range (DietCodeTuner.h), votes of all of its
// sizes for few micro-kernels, and a decision tree over the votes.
// docs/dietcode.md compares this with the paper.
//
//===----------------------------------------------------------------------===//
#include "DietCodeBaselines.h"
#include "DietCodePlan.h"
#include "DietCodeTransfer.h"
#include "DietCodeTuner.h"
#include "FTuner/Baselines/SinglePrograms.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Search/Planning/RangePlanner.h"
#include "FTuner/Search/Planning/RankedStrategy.h"
#include "FTuner/Search/Problem/SearchOptions.h"
#include "FTuner/Search/Ranking/ShapeSeed.h"
#include "llvm/ADT/STLExtras.h"
#include <set>

using namespace ftuner;

namespace {
enum class VoteDispatch {
  /// A decision tree over the votes.
  Tree,
  /// As for other strategies, from many shapes of the range.
  Planner,
};

struct StrategyOptions : DietCodeOptions {
  int64_t instances = 8, buckets = 16;
  VoteDispatch dispatch = VoteDispatch::Tree;
  DietCodeMode mode = DietCodeMode::Joint;
  /// Files of learned models; empty: none.
  std::string transferFrom, saveModel;
  /// Sizes of the main axis with commas between, in place of `instances`.
  std::string instanceSizes;
};
} // namespace

static llvm::Expected<std::vector<int64_t>> parseSizes(llvm::StringRef text) {
  std::vector<int64_t> sizes;
  for (llvm::StringRef part : llvm::split(text, ','))
    if (part.trim().getAsInteger(10, sizes.emplace_back()) || sizes.back() < 1)
      return llvm::createStringError(
          "expected sizes above 0 with commas between, but got '" + text + "'");
  llvm::sort(sizes);
  return sizes;
}

/// Returns an error that says what is wrong with the file of a learned model.
static llvm::Error checkLearnedModel(llvm::StringRef path) {
  if (path.empty())
    return llvm::Error::success();
  return readLearnedModel(path, DietCodeTuner::featureNames()).takeError();
}

static const OptionTable<StrategyOptions> &ownOptions() {
  using Options = StrategyOptions;
  static const OptionTable<StrategyOptions> table = {
      option("dietcode-mode", &Options::mode,
             "The strategy 'dietcode' searches for all shapes together "
             "('joint'), or as its peers do: once a shape ('per-shape'), with "
             "the kernel of the 'largest' one for all, also by "
             "'loop-partitioning' or 'global-padding', or once a 'bucket'",
             {{"joint", DietCodeMode::Joint},
              {"per-shape", DietCodeMode::PerShape},
              {"largest", DietCodeMode::Largest},
              {"loop-partitioning", DietCodeMode::LoopPartitioning},
              {"bucket", DietCodeMode::Bucket},
              {"global-padding", DietCodeMode::GlobalPadding}}),
      option("buckets", &Options::buckets,
             "The mode 'bucket' cuts the main axis into at most this number of "
             "buckets of equal width")
          .within(1, 256),
      option("transfer-from", &Options::transferFrom,
             "The strategy 'dietcode' goes on from the learned model of "
             "another device in this file")
          .file(OptionFile::Access::Read)
          .checkedBy(checkLearnedModel),
      option("save-model", &Options::saveModel,
             "The strategy 'dietcode' writes the model that it learned to this "
             "file")
          .file(OptionFile::Access::Write),
      option("instances", &Options::instances,
             "The strategy 'dietcode' searches for this number of sizes of the "
             "main axis together")
          .within(1, 256),
      option("instance-sizes", &Options::instanceSizes,
             "The strategy 'dietcode' searches for these sizes, separated by "
             "commas, in place of those of 'instances'")
          .checkedBy([](llvm::StringRef text) {
            return text.empty() ? llvm::Error::success()
                                : parseSizes(text).takeError();
          }),
      option("trials", static_cast<int64_t Options::*>(&Options::trials),
             "The strategy 'dietcode' measures this number of micro-kernels, "
             "or predicts them in place of a measurement")
          .within(1, 1'000'000),
      option("dietcode-seed", static_cast<int64_t Options::*>(&Options::seed),
             "The search of 'dietcode' begins with this seed")
          .within(0, 1'000'000),
      option("measure-at",
             static_cast<MeasureAt Options::*>(&Options::measureAt),
             "A micro-kernel is measured at full 'waves' of blocks, or at the "
             "'instance' that it loses least of",
             {{"waves", MeasureAt::Waves}, {"instance", MeasureAt::Instance}})
          .testing(),
      option(
          "throughput-model",
          static_cast<ThroughputModel Options::*>(&Options::model),
          "Boosted 'trees' predict micro-kernels between measurements, or "
          "nothing does ('none')",
          {{"trees", ThroughputModel::Trees}, {"none", ThroughputModel::None}}),
      option("occupancy-form",
             static_cast<OccupancyForm Options::*>(&Options::occupancy),
             "A ragged last wave loses throughput in a 'linear' way with a "
             "measured coefficient, in the artifact's 'hyperbolic' way, by the "
             "'share' of busy SMs, or not at all ('off')",
             {{"linear", OccupancyForm::Linear},
              {"hyperbolic", OccupancyForm::Hyperbolic},
              {"share", OccupancyForm::Share},
              {"off", OccupancyForm::Off}}),
      option("pad-term", static_cast<bool Options::*>(&Options::padding),
             "Padding lowers the predicted throughput of 'dietcode'"),
      option("pad-reduce", static_cast<bool Options::*>(&Options::padReduce),
             "Padding of the reduce axis lowers the predicted throughput of "
             "'dietcode'")
          .testing(),
      option("perfect-tiles",
             static_cast<bool Options::*>(&Options::perfectTiles),
             "Tiles of 'dietcode' are divisors of the largest extents, where "
             "these have some"),
      option("mutate-threads",
             static_cast<bool Options::*>(&Options::mutateThreads),
             "Mutations of 'dietcode' change threads")
          .testing(),
      option("vote-tolerance",
             static_cast<double Options::*>(&Options::tolerance),
             "A vote is made again if the measured program is slower than "
             "predicted by more than this share")
          .testing()
          .within(0, 10),
      option(
          "fitness", static_cast<Fitness Options::*>(&Options::fitness),
          "The evolution of 'dietcode' seeks a cost 'relative' to each shape's "
          "best so far, or 'absolute' throughput",
          {{"relative", Fitness::Relative}, {"absolute", Fitness::Absolute}}),
      option("votes", static_cast<Votes Options::*>(&Options::votes),
             "A size votes for its n 'best' micro-kernels, or for all that are "
             "'near' its best; few of them cover all sizes",
             {{"near", Votes::Near}, {"best", Votes::Best}}),
      option(
          "vote-sizes", static_cast<VoteSizes Options::*>(&Options::voteSizes),
          "All sizes of the 'range' vote for micro-kernels, or only the "
          "'instances' that were searched for",
          {{"range", VoteSizes::Range}, {"instances", VoteSizes::Instances}}),
      option("vote-dispatch", &Options::dispatch,
             "A decision 'tree' over the votes dispatches sizes to "
             "micro-kernels, or the 'planner' of all strategies does",
             {{"tree", VoteDispatch::Tree}, {"planner", VoteDispatch::Planner}})
          .testing(),
  };
  return table;
}

//===----------------------------------------------------------------------===//
// Shapes and their measurer
//===----------------------------------------------------------------------===//

/// Returns the sizes of an axis that the options name, each once, ascending;
/// none for a fixed axis. With a histogram, each stands for the sizes up to the
/// next.
static llvm::Expected<std::vector<SizeSample>>
namedSizes(const Axis &axis, const StrategyOptions &own) {
  std::vector<SizeSample> named;
  if (own.instanceSizes.empty() || !axis.isDynamic())
    return named;
  llvm::Expected<std::vector<int64_t>> sizes = parseSizes(own.instanceSizes);
  if (!sizes)
    return sizes.takeError();
  for (int64_t size : *sizes)
    if (axis.range.contains(size) &&
        (named.empty() || named.back().size != size))
      named.push_back({size, axis.weights.empty() ? 1.0 : 0.0});
  if (named.empty() || axis.weights.empty())
    return named;
  for (const SizeSample &sample : sampleSizes(axis, maxEnumeratedSizes)) {
    auto next = llvm::upper_bound(named, sample.size,
                                  [](int64_t size, const SizeSample &sample) {
                                    return size < sample.size;
                                  });
    (next == named.begin() ? *next : *std::prev(next)).weight += sample.weight;
  }
  return named;
}

/// Returns a remark on the sizes that the options name; empty for none.
static llvm::Expected<std::string>
remarkOnNamedSizes(const Workload &workload, const StrategyOptions &own) {
  if (own.instanceSizes.empty())
    return "";
  const Axis &axis = workload.axes[workload.mainAxis()];
  llvm::Expected<std::vector<SizeSample>> named = namedSizes(axis, own);
  if (!named)
    return named.takeError();
  std::string start = "option --instance-sizes: axis '" + axis.name + "' ";
  if (!axis.isDynamic())
    return start + "is fixed";
  if (named->empty())
    return start + "has none of these sizes; 'instances' chooses some";
  llvm::Expected<std::vector<int64_t>> sizes = parseSizes(own.instanceSizes);
  if (!sizes)
    return sizes.takeError();
  std::string others;
  for (int64_t size : *sizes)
    if (!axis.range.contains(size))
      others += (others.empty() ? "" : ", ") + std::to_string(size);
  return others.empty() ? "" : start + "does not have " + others;
}

/// Returns the instances: for each cell of the other axes, sizes of the main
/// axis in equal steps (or equal ratios, if its range is open), or the sizes
/// that the options name.
static llvm::Expected<std::vector<WeightedShape>>
instancesOf(const Workload &workload, const StrategyOptions &own) {
  int64_t count = own.instances;
  unsigned mainAxis = workload.mainAxis();
  const Axis &axis = workload.axes[mainAxis];
  llvm::Expected<std::vector<SizeSample>> named = namedSizes(axis, own);
  if (!named)
    return named.takeError();
  std::vector<SizeSample> sizes = std::move(*named);
  std::optional<int64_t> all = axis.range.count();
  if (!sizes.empty()) {
    // Named.
  } else if (count == 1)
    sizes = {{largestSize(axis), 1}};
  else if (!all || !axis.weights.empty() || *all <= count)
    sizes = sampleSizes(axis, count);
  else
    for (int64_t i = 0; i < count; ++i)
      sizes.push_back(
          {std::max<int64_t>(1, axis.range.min + i * (*all - 1) / (count - 1) *
                                                     axis.range.step),
           1});
  std::vector<WeightedShape> shapes;
  std::set<Shape> known;
  for (const SizeSample &size : sizes)
    for (const ShapeCell &cell : shapeCells(workload, mainAxis)) {
      Shape shape = shapeAt(workload, cell, mainAxis, size.size);
      if (known.insert(shape).second)
        shapes.push_back({std::move(shape), size.weight * cell.weight});
    }
  return shapes;
}

/// Opens the measurer of the context. Returns null if the context does not
/// specify a measurer.
static llvm::Expected<std::unique_ptr<LoggingMeasurer>>
openMeasurer(const SearchProblem &problem, const SearchContext &context) {
  if (!context.measurer)
    return nullptr;
  return context.openMeasurer(problem.device);
}

/// Asks a measurer.
static DietCodeTuner::Timer timerOf(Measurer &measurer) {
  return [&](llvm::ArrayRef<MeasurementRequest> requests) {
    std::vector<llvm::Expected<double>> times;
    for (llvm::Expected<Measurement> &found : measurer.measure(requests)) {
      if (!found)
        times.push_back(found.takeError());
      else if (found->spillBytes.value_or(0) > 0)
        times.push_back(llvm::createStringError(
            "the kernel spills %lld bytes",
            static_cast<long long>(*found->spillBytes)));
      else if (!found->microseconds)
        times.push_back(llvm::createStringError("the kernel has no time"));
      else
        times.push_back(*found->microseconds);
    }
    return times;
  };
}

/// Has the cost model's predictions stand in.
static DietCodeTuner::Timer predictionsOf(const SearchProblem &problem) {
  return [&](llvm::ArrayRef<MeasurementRequest> requests) {
    std::vector<const KernelFamily *> families;
    std::vector<llvm::ArrayRef<int64_t>> shapes;
    for (const MeasurementRequest &request : requests) {
      families.push_back(&request.family);
      shapes.push_back(request.shape);
    }
    std::vector<llvm::Expected<double>> times;
    for (double score : problem.predictEach(families, shapes))
      times.push_back(-score);
    return times;
  };
}

//===----------------------------------------------------------------------===//
// Ranker
//===----------------------------------------------------------------------===//

namespace {
class DietCodeRanker final : public ProgramRanker {
public:
  DietCodeRanker(const SearchProblem &problem, CandidateSet candidates,
                 std::vector<WeightedShape> shapes,
                 std::unique_ptr<LoggingMeasurer> measurer,
                 std::unique_ptr<DietCodeTuner> tuner,
                 std::vector<unsigned> kernels)
      : ProgramRanker(problem, std::move(candidates)),
        shapes(std::move(shapes)), measurer(std::move(measurer)),
        tuner(std::move(tuner)), kernels(std::move(kernels)) {}

  llvm::Expected<RankedShape> rank(llvm::ArrayRef<int64_t> shape) override;
  bool ranksByScore() const override { return false; }
  double rate(const KernelFamily &family, const KernelResources &resources,
              llvm::ArrayRef<int64_t> shape,
              const RankedShape &neighbour) const override;
  void describe(const RankedShape &ranked, ShapeReport &report) override;
  void report(llvm::ArrayRef<RankedShape> samples, Plan &plan) const override {
    reportCounts(plan);
  }
  /// The plan of the decision tree.
  llvm::Expected<Plan> planByVotes();
  /// Writes what was learned by measurements to a file.
  llvm::Error saveModel(llvm::StringRef path) const;

private:
  void reportCounts(Plan &plan) const;
  /// The shapes that vote: those that were searched for, or samples of the
  /// range.
  std::vector<Voter> voters() const;
  /// The variant, for operands of any alignment, of the best micro-kernel for a
  /// shape that has one.
  std::optional<KernelFamily> anyUnaligned(llvm::ArrayRef<int64_t> shape);

  std::string measurerName() const {
    return measurer ? measurer->name().str() : std::string();
  }

  const std::vector<WeightedShape> shapes;
  /// Null where predictions stand in. The tuner asks it.
  const std::unique_ptr<LoggingMeasurer> measurer;
  const std::unique_ptr<DietCodeTuner> tuner;
  /// For each candidate, its place among the tuner's.
  const std::vector<unsigned> kernels;
};
} // namespace

llvm::Expected<RankedShape>
DietCodeRanker::rank(llvm::ArrayRef<int64_t> shape) {
  RankedShape ranked{Shape(shape), {}};
  for (unsigned i = 0; i < set.candidates.size(); ++i)
    if (std::optional<unsigned> family = table.single(i))
      ranked.programs.push_back(
          {*family, tuner->score(tuner->kernels()[kernels[i]], shape)});
  if (ranked.programs.empty())
    return llvm::createStringError("every micro-kernel of workload '" +
                                   problem.workload.name + "' was rejected");
  ranked.numRated = ranked.programs.size();
  sortByScore(ranked.programs);
  return ranked;
}

double DietCodeRanker::rate(const KernelFamily &family,
                            const KernelResources &resources,
                            llvm::ArrayRef<int64_t> shape,
                            const RankedShape &neighbour) const {
  for (auto [index, candidate] : llvm::enumerate(set.candidates))
    if (candidate.family == family)
      return tuner->score(tuner->kernels()[kernels[index]], shape);
  // The family is not a candidate: its score is the best one's, scaled by the
  // ratio of predictions.
  unsigned best = neighbour.programs.front().family;
  double reference = problem.predict(table.families[best], shape).score;
  return tuner->score(tuner->kernels()[kernels[table.candidateOf(best)]],
                      shape) *
         reference / problem.predict(family, shape).score;
}

void DietCodeRanker::describe(const RankedShape &ranked, ShapeReport &report) {
  StageReport measured;
  measured.name = "micro_kernels";
  measured.requirement = measurer ? "measured by " + measurerName()
                                  : "predicted in place of measured";
  measured.before = tuner->counts.drawn;
  measured.kept = ranked.numRated;
  report.measurer = measurerName();
  report.stages = {measured};
}

void DietCodeRanker::reportCounts(Plan &plan) const {
  const DietCodeTuner::Counts &counts = tuner->counts;
  reportTuning(problem, counts, shapes.size(), tuner->kernels().size(),
               tuner->numPrograms(), measurerName(), plan);
  auto add = [&](llvm::StringRef name, double value) {
    plan.statistics.push_back({name.str(), value});
  };
  add("ragged_runs", static_cast<double>(counts.ragged));
  add("occupancy_k", tuner->occupancy().k);
  add("occupancy_k_error", counts.kStandardError);
}

llvm::Error DietCodeRanker::saveModel(llvm::StringRef path) const {
  llvm::Expected<LearnedModel> model = tuner->learned(measurerName());
  if (!model)
    return model.takeError();
  return writeLearnedModel(path, *model, DietCodeTuner::featureNames());
}

std::optional<KernelFamily>
DietCodeRanker::anyUnaligned(llvm::ArrayRef<int64_t> shape) {
  llvm::Expected<RankedShape> ranked = rank(shape);
  if (!ranked) {
    llvm::consumeError(ranked.takeError());
    return std::nullopt;
  }
  for (const RankedFamily &program : ranked->programs)
    if (const auto &variant =
            tuner->unalignedOf(kernels[table.candidateOf(program.family)]))
      return variant;
  return std::nullopt;
}

std::vector<Voter> DietCodeRanker::voters() const {
  std::vector<Voter> result;
  if (tuner->voteSizes() == VoteSizes::Instances) {
    for (const WeightedShape &shape : shapes)
      result.push_back({shape});
    return result;
  }
  const Workload &workload = problem.workload;
  RangeSamples samples(workload);
  for (auto [shape, weight] : llvm::zip_equal(samples.shapes, samples.weights))
    result.push_back(
        {{shape, weight},
         set.alignment > 1 && alignmentOf(workload, shape) < set.alignment});
  return result;
}

llvm::Expected<Plan> DietCodeRanker::planByVotes() {
  std::vector<Voter> voters = this->voters();
  auto isUnaligned = [](const Voter &voter) { return voter.isUnaligned; };
  int64_t maxKernels = llvm::any_of(voters, isUnaligned)
                           ? problem.options.maxKernels
                           : maxAlignedKernels(problem, set.alignment);
  llvm::Expected<std::vector<ProgramChoice>> choices =
      tuner->choose(voters, static_cast<size_t>(maxKernels),
                    tuner->voteSizes() == VoteSizes::Range);
  if (!choices)
    return choices.takeError();

  std::vector<SizeRange> space = wholeSpace(problem.workload);
  Plan plan;
  std::map<std::pair<unsigned, bool>, unsigned> families;
  std::vector<VotedShape> aligned, unaligned;
  for (auto [voter, choice] : llvm::zip_equal(voters, *choices)) {
    auto [it, isNew] = families.try_emplace({choice.kernel, choice.isUnaligned},
                                            plan.families.size());
    if (isNew)
      plan.families.push_back(tuner->familyOf(choice));
    (voter.isUnaligned ? unaligned : aligned)
        .push_back({voter.shape, voter.weight, it->second});
  }
  // Beyond a closed range, the family of the largest shape.
  plan.entries = boxesOfVotes(aligned.empty() ? unaligned : aligned, space);
  plan.generalFamily = (aligned.empty() ? unaligned : aligned).back().vote;
  plan.unalignedGeneralFamily = plan.generalFamily;
  if (!unaligned.empty()) {
    plan.unalignedEntries = boxesOfVotes(unaligned, space);
    plan.unalignedGeneralFamily = unaligned.back().vote;
  } else if (set.alignment > 1) {
    if (llvm::Error error =
            addUnalignedFamilies(problem, set.alignment, plan, [&] {
              return anyUnaligned(voters.back().shape);
            }))
      return error;
  }
  plan.statistics.push_back({"shapes", static_cast<double>(voters.size())});
  reportCounts(plan);
  plan.statistics.push_back(
      {"leaves", static_cast<double>(plan.entries.size())});
  plan.statistics.push_back(
      {"families", static_cast<double>(plan.families.size())});
  std::vector<WeightedShape> voted(voters.begin(), voters.end());
  predictShapes(
      problem, plan, voted,
      [&](size_t index, const KernelFamily &family) -> std::optional<double> {
        // Predictions may stand in, and unaligned shapes may have a variant
        // that was not measured.
        ProgramChoice choice = (*choices)[index];
        if (!measurer || !(family == tuner->familyOf(choice)))
          return std::nullopt;
        return tuner->microseconds(voters[index].shape, choice);
      });
  return plan;
}

//===----------------------------------------------------------------------===//
// Strategy
//===----------------------------------------------------------------------===//

namespace {
class DietCodeStrategy final : public RankedStrategy {
public:
  llvm::StringRef name() const override { return "dietcode"; }
  bool measures() const override { return true; }
  OptionDecls options() const override { return ownOptions().decls(); }

  llvm::Expected<std::unique_ptr<ProgramRanker>>
  makeRanker(const SearchProblem &problem,
             const SearchContext &context) const override {
    if (ownOptions().read(problem.options.own).mode != DietCodeMode::Joint)
      return rankerOf(problem, tuneBaseline(problem, context));
    return rankerOf(problem, tune(problem, context));
  }
  llvm::Expected<Plan> search(const SearchProblem &problem,
                              const SearchContext &context) const override;

private:
  /// Returns the first path whose workers are threads; null if the workload has
  /// no such path.
  static const CodegenModel *pathOf(const SearchProblem &problem);
  /// Tunes the micro-kernels. Returns null if no path can emit one. A model to
  /// transfer is ignored without a measurer.
  llvm::Expected<std::unique_ptr<DietCodeRanker>>
  tune(const SearchProblem &problem, const SearchContext &context) const;
  llvm::Expected<std::unique_ptr<DietCodeBaseline>>
  tuneBaseline(const SearchProblem &problem,
               const SearchContext &context) const;
  /// Implements `search` after options are checked.
  llvm::Expected<Plan> searchAsPeer(const SearchProblem &problem,
                                    const SearchContext &context) const;
  llvm::Expected<Plan> searchJointly(const SearchProblem &problem,
                                     const SearchContext &context,
                                     const StrategyOptions &own) const;
  /// Returns the plan if no path can emit a micro-kernel.
  llvm::Expected<Plan> planSingly(const SearchProblem &problem,
                                  const SearchContext &context) const;
  /// Returns the ranker, or, if it is null, the ranker that all strategies
  /// share.
  template <typename Ranker>
  llvm::Expected<std::unique_ptr<ProgramRanker>>
  rankerOf(const SearchProblem &problem,
           llvm::Expected<std::unique_ptr<Ranker>> ranker) const {
    if (!ranker)
      return ranker.takeError();
    if (!*ranker)
      return rankSinglePrograms(problem, name());
    return std::move(*ranker);
  }
};
} // namespace

const CodegenModel *DietCodeStrategy::pathOf(const SearchProblem &problem) {
  if (!problem.workload.isContraction())
    return nullptr;
  auto paths =
      supportingModels(problem.paths, problem.workload, problem.device);
  if (!paths) {
    llvm::consumeError(paths.takeError());
    return nullptr;
  }
  std::vector<ThreadTile> one(problem.workload.axes.size());
  for (const CodegenModel *path : *paths)
    if (path->threadFamily(problem.workload, one, 1))
      return path;
  return nullptr;
}

llvm::Expected<std::unique_ptr<DietCodeRanker>>
DietCodeStrategy::tune(const SearchProblem &problem,
                       const SearchContext &context) const {
  const CodegenModel *path = pathOf(problem);
  if (!path)
    return nullptr;
  StrategyOptions own = ownOptions().read(problem.options.own);
  llvm::Expected<std::vector<WeightedShape>> instances =
      instancesOf(problem.workload, own);
  if (!instances)
    return instances.takeError();
  std::vector<WeightedShape> shapes = std::move(*instances);
  llvm::Expected<std::unique_ptr<LoggingMeasurer>> opened =
      openMeasurer(problem, context);
  if (!opened)
    return opened.takeError();
  std::unique_ptr<LoggingMeasurer> measurer = std::move(*opened);
  auto tuner = std::make_unique<DietCodeTuner>(
      problem, *path, shapes, own,
      measurer ? timerOf(*measurer) : predictionsOf(problem),
      measurer != nullptr, seedOf({own.seed}, context.seed));
  if (!own.transferFrom.empty() && measurer &&
      own.model != ThroughputModel::None) {
    llvm::Expected<LearnedModel> source =
        readLearnedModel(own.transferFrom, DietCodeTuner::featureNames());
    if (!source)
      return source.takeError();
    tuner->transferFrom(std::move(*source));
  }
  if (llvm::Error error = tuner->run())
    return error;
  if (tuner->kernels().empty())
    return nullptr;
  CandidateSet set;
  std::vector<unsigned> kernels;
  for (auto [index, kernel] : llvm::enumerate(tuner->kernels())) {
    if (kernel.runs.empty())
      continue;
    kernels.push_back(index);
    set.alignment = std::max(set.alignment, kernel.family.alignment());
    set.candidates.push_back(
        {kernel.family, kernel.family.ukernel(0),
         kernel.family.path().resources(problem.workload, kernel.family)});
  }
  set.numAdded = set.candidates.size();
  if (set.candidates.empty())
    return llvm::createStringError("strategy 'dietcode': none of " +
                                   std::to_string(tuner->kernels().size()) +
                                   " micro-kernels of workload '" +
                                   problem.workload.name +
                                   "' could be measured");
  return std::make_unique<DietCodeRanker>(
      problem, std::move(set), std::move(shapes), std::move(measurer),
      std::move(tuner), std::move(kernels));
}

llvm::Expected<std::unique_ptr<DietCodeBaseline>>
DietCodeStrategy::tuneBaseline(const SearchProblem &problem,
                               const SearchContext &context) const {
  const CodegenModel *path = pathOf(problem);
  if (!path)
    return nullptr;
  StrategyOptions own = ownOptions().read(problem.options.own);
  // Peers measure a program of the shape itself.
  own.measureAt = MeasureAt::Instance;
  llvm::Expected<std::unique_ptr<LoggingMeasurer>> measurer =
      openMeasurer(problem, context);
  if (!measurer)
    return measurer.takeError();
  LoggingMeasurer *asked = measurer->get();
  auto makeTuner = [&](llvm::ArrayRef<WeightedShape> shape, bool onlyDivisors,
                       size_t searches,
                       int64_t spent) -> std::unique_ptr<DietCodeTuner> {
    StrategyOptions one = own;
    one.onlyDivisors = onlyDivisors;
    if (asked)
      one.trials = std::clamp<int64_t>(
          context.budget / static_cast<int64_t>(searches), 1, one.trials);
    one.trials -= spent;
    if (one.trials <= 0)
      return nullptr;
    return std::make_unique<DietCodeTuner>(
        problem, *path, shape, one,
        asked ? timerOf(*asked) : predictionsOf(problem), asked != nullptr,
        seedOf(shape.front().shape, seedOf({own.seed}, context.seed)));
  };
  llvm::Expected<std::vector<WeightedShape>> shapes =
      instancesOf(problem.workload, own);
  if (!shapes)
    return shapes.takeError();
  return DietCodeBaseline::create(problem, own.mode, own.buckets,
                                  std::move(*shapes), std::move(*measurer),
                                  makeTuner);
}

/// Says whether learned models can be read and written by a search.
static llvm::Error checkModelOptions(const StrategyOptions &own,
                                     const SearchContext &context) {
  if (own.transferFrom.empty() && own.saveModel.empty())
    return llvm::Error::success();
  llvm::StringRef options = "options --transfer-from and --save-model: ";
  if (own.mode != DietCodeMode::Joint)
    return llvm::createStringError(options + "expected dietcode-mode=joint");
  if (!context.measurer || own.model == ThroughputModel::None)
    return llvm::createStringError(
        options + "expected a measurer, and trees as throughput-model");
  if (own.saveModel.empty())
    return llvm::Error::success();
  return checkWritable(own.saveModel);
}

llvm::Expected<Plan>
DietCodeStrategy::planSingly(const SearchProblem &problem,
                             const SearchContext &context) const {
  llvm::Expected<std::unique_ptr<ProgramRanker>> ranker =
      rankSinglePrograms(problem, name());
  if (!ranker)
    return ranker.takeError();
  return planBy(**ranker, problem, context);
}

llvm::Expected<Plan>
DietCodeStrategy::searchAsPeer(const SearchProblem &problem,
                               const SearchContext &context) const {
  llvm::Expected<std::unique_ptr<DietCodeBaseline>> baseline =
      tuneBaseline(problem, context);
  if (!baseline)
    return baseline.takeError();
  if (!*baseline)
    return planSingly(problem, context);
  return (*baseline)->plan;
}

llvm::Expected<Plan>
DietCodeStrategy::searchJointly(const SearchProblem &problem,
                                const SearchContext &context,
                                const StrategyOptions &own) const {
  llvm::Expected<std::unique_ptr<DietCodeRanker>> ranker =
      tune(problem, context);
  if (!ranker)
    return ranker.takeError();
  if (!*ranker) {
    llvm::Expected<Plan> plan = planSingly(problem, context);
    if (plan && !own.saveModel.empty())
      plan->remarks.push_back("nothing was learned of this workload: option "
                              "--save-model writes no file of it");
    return plan;
  }
  if (!own.saveModel.empty())
    if (llvm::Error error = (*ranker)->saveModel(own.saveModel))
      return error;
  if (own.dispatch == VoteDispatch::Planner)
    return planBy(**ranker, problem, context);
  // A single kernel has to do, for operands of any alignment.
  if ((*ranker)->set.alignment > 1 && problem.options.maxKernels == 1)
    return planRange(**ranker);
  return (*ranker)->planByVotes();
}

llvm::Expected<Plan>
DietCodeStrategy::search(const SearchProblem &problem,
                         const SearchContext &context) const {
  StrategyOptions own = ownOptions().read(problem.options.own);
  if (llvm::Error error = checkModelOptions(own, context))
    return error;
  bool isFollowed = pathOf(problem) != nullptr;
  llvm::Expected<std::string> remark =
      isFollowed ? remarkOnNamedSizes(problem.workload, own) : "";
  if (!remark)
    return remark.takeError();
  llvm::Expected<Plan> plan = own.mode == DietCodeMode::Joint
                                  ? searchJointly(problem, context, own)
                                  : searchAsPeer(problem, context);
  if (plan && !remark->empty())
    plan->remarks.push_back(std::move(*remark));
  return plan;
}

namespace ftuner {
const SearchStrategy &dietcodeStrategy() {
  static const DietCodeStrategy strategy;
  return strategy;
}
} // namespace ftuner
