//===- DietCodeTuner.h - Learned search of micro-kernels --------*- C++ -*-===//
//
// Source: DietCode (DietCodeSpace.h). One search for all shapes of a workload:
//
//     until `trials` micro-kernels are measured
//       a population of drawn micro-kernels and of the best measured ones
//         evolves over some generations: the fitness of a micro-kernel is the
//         greatest Cost_M (DietCodeModel.h) over the shapes, each by its best
//         so far, to a power that grows with what was measured; roulette,
//         mutation, no crossover
//       the fittest that were not measured, and some drawn ones, are measured
//       the model of f_MK learns from all measurements
//
// f_MK is a model of boosted trees of what the codegen path says of a block;
// before there are 100 rows every prediction is 1. Without a measurer the cost
// model's times stand in for measurements, and for the model.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_BASELINES_DIETCODE_DIETCODETUNER_H
#define FTUNER_LIB_BASELINES_DIETCODE_DIETCODETUNER_H

#include "DietCodeModel.h"
#include "DietCodeSpace.h"
#include "DietCodeTransfer.h"
#include "FTuner/Search/Problem/SearchContext.h"
#include "TreeTrainer.h"
#include <functional>
#include <map>
#include <set>
#include <tuple>

namespace ftuner {

/// The shapes at which a micro-kernel is measured.
enum class MeasureAt {
  /// As many blocks as there are SMs, and as the SMs hold at once.
  Waves,
  /// The shape that it loses least of by ragged waves and padding.
  Instance,
};

/// The model that predicts f_MK between measurements.
enum class ThroughputModel {
  Trees,
  /// No model: all micro-kernels are equal, and the search is random.
  None,
};

/// The fitness of a micro-kernel, by its greatest Cost_M over the shapes.
enum class Fitness {
  /// As a share of the best that was measured for the shape.
  Relative,
  /// In FLOP/s: large shapes count more.
  Absolute,
};

/// The sizes that choose among measured micro-kernels.
enum class VoteSizes {
  /// The shapes that were searched for.
  Instances,
  /// All sizes of the range: a prediction costs nothing.
  Range,
};

struct DietCodeOptions : DietCodeSpaceOptions {
  int64_t trials = 1000;
  int64_t seed = 0;
  MeasureAt measureAt = MeasureAt::Waves;
  ThroughputModel model = ThroughputModel::Trees;
  OccupancyForm occupancy = OccupancyForm::Linear;
  /// True if f_pad counts, and if it counts reduce axes.
  bool padding = true, padReduce = true;
  /// Share by which a measured program may be slower than predicted before it
  /// counts as a vote that was made again.
  double tolerance = 0.1;
  Fitness fitness = Fitness::Relative;
  VoteSizes voteSizes = VoteSizes::Range;
  Votes votes = Votes::Near;
};

/// A shape and its weight.
struct WeightedShape {
  Shape shape;
  double weight = 1;
};

/// A time of a micro-kernel's program.
struct TimedRun {
  Shape shape;
  double microseconds = 0;
};

/// A shape that chooses. `isUnaligned`: its rows are not aligned for what the
/// micro-kernels ask, so that their variants alone can serve it.
struct Voter : WeightedShape {
  bool isUnaligned = false;
};

/// A micro-kernel by its number, or its variant for operands of any alignment.
struct ProgramChoice {
  unsigned kernel = 0;
  bool isUnaligned = false;
};

struct TunedKernel {
  MicroKernel tiles;
  KernelFamily family;
  /// Features of its block (`featureNames`).
  std::vector<float> features;
  /// At the shapes of `MeasureAt`.
  std::vector<TimedRun> runs;
};

class DietCodeTuner {
public:
  /// Times the requested programs, in microseconds. An error speaks
  /// against the family, or says that nothing can be measured any more.
  using Timer = std::function<std::vector<llvm::Expected<double>>(
      llvm::ArrayRef<MeasurementRequest> requests)>;

  /// Makes a tuner of a contraction for a path whose workers are threads.
  /// Problem and shapes outlive the tuner. If `learns`, a model predicts
  /// micro-kernels between measurements; otherwise `timer` times every
  /// micro-kernel that is looked at.
  DietCodeTuner(const SearchProblem &problem, const CodegenModel &path,
                llvm::ArrayRef<WeightedShape> shapes,
                const DietCodeOptions &options, Timer timer, bool learns,
                uint64_t seed);

  llvm::Error run();
  /// Returns whether the search may have a micro-kernel; if empty, it may have
  /// all that can be emitted.
  std::function<bool(const KernelFamily &)> admits;
  /// Sets the model of another device from which the tuner goes on. Called
  /// before `run`, and only if the tuner learns.
  void transferFrom(LearnedModel model) { source = std::move(model); }
  /// Trains anew and returns the learned model, on top of the transferred one.
  /// Returns an error if nothing was measured, or if there is no model.
  llvm::Expected<LearnedModel> learned(llvm::StringRef measurer) const;
  /// Returns Cost_M: useful FLOP/s for a shape, from measurements of the
  /// micro-kernel.
  double score(const TunedKernel &kernel, llvm::ArrayRef<int64_t> shape) const;
  /// Returns f_occ · f_pad.
  double share(const KernelFamily &family, llvm::ArrayRef<int64_t> shape) const;
  /// Returns the choice of each voter among `kernels` and their variants, at
  /// most `maxKernels` different ones. Every choice is verified: its program is
  /// timed, and the voter votes again by that time; a program that fails loses
  /// the vote. A program is timed once for all shapes with the same blocks and
  /// steps, since it pads them alike. With `triesRivals`, rivals of choices are
  /// timed, too (see `rivals`). Fits k to the programs that are timed. Returns
  /// an error if a voter has no micro-kernel.
  llvm::Expected<std::vector<ProgramChoice>>
  choose(llvm::ArrayRef<Voter> voters, size_t maxKernels,
         bool triesRivals = false);
  /// Returns the choice of each shape that was searched for, as a number in
  /// `kernels`.
  llvm::Expected<std::vector<unsigned>> choose(size_t maxKernels);

  /// Returns the micro-kernel's variant for operands of any alignment, if there
  /// is a feasible one.
  const std::optional<KernelFamily> &unalignedOf(unsigned kernel);

  /// Returns the measured time of a choice for a shape; no value if `choose`
  /// did not time it, or if predictions replace measurements.
  std::optional<double> microseconds(llvm::ArrayRef<int64_t> shape,
                                     ProgramChoice choice);
  const KernelFamily &familyOf(ProgramChoice choice) {
    return choice.isUnaligned ? *unalignedOf(choice.kernel)
                              : measured[choice.kernel].family;
  }

  /// Micro-kernels that were asked for, whether they have a time or not.
  int64_t numAsked() const { return static_cast<int64_t>(seen.size()); }
  /// Programs that have a time.
  int64_t numPrograms() const { return static_cast<int64_t>(timed.size()); }

  const std::vector<TunedKernel> &kernels() const { return measured; }
  VoteSizes voteSizes() const { return options.voteSizes; }
  const OccupancyFactor &occupancy() const { return occupancyFactor; }

  struct Counts {
    int64_t drawn = 0, rejectedByPath = 0, predicted = 0, measured = 0,
            failed = 0, rounds = 0, verified = 0, revoted = 0, ragged = 0;

    double kStandardError = 0;
  } counts;

  /// Returns the names of the features of a block, followed by
  /// `deviceFeatureNames`.
  static llvm::ArrayRef<llvm::StringLiteral> featureNames();

private:
  /// A micro-kernel of a population.
  struct Individual {
    MicroKernel tiles;
    /// Null where no path can emit it.
    const TunedKernel *kernel = nullptr;
    double fitness = 0;
  };
  using Key = std::vector<int64_t>;
  static Key keyOf(const MicroKernel &tiles);

  /// The micro-kernel with family and features; null if it cannot be emitted.
  const TunedKernel *lookUp(const MicroKernel &tiles);
  std::vector<float> featuresOf(const KernelFamily &family) const;
  std::vector<Individual> firstGeneration();
  std::vector<Individual> nextGeneration(llvm::ArrayRef<Individual> parents);
  /// Sets the fitness of each.
  llvm::Error rate(std::vector<Individual> &population);
  llvm::Error train();
  /// Returns the measurements as the rows of a model without ensembles.
  LearnedModel rowsOfMeasured() const;
  TrainingRows trainingRows() const;
  /// Times micro-kernels and adds them to those measured.
  llvm::Error measure(llvm::ArrayRef<const TunedKernel *> chosen);
  std::vector<Shape> shapesToMeasure(const KernelFamily &family) const;
  /// Adds a program whose last wave was ragged, with its useful FLOP/s.
  void addRaggedRun(const TunedKernel &kernel, llvm::ArrayRef<int64_t> shape,
                    double found);
  /// A program for all shapes of which it takes as many blocks and steps along
  /// each axis.
  struct ProgramKey {
    ProgramChoice choice;
    Shape tiles;
    bool operator<(const ProgramKey &other) const {
      return std::tie(choice.kernel, choice.isUnaligned, tiles) <
             std::tie(other.choice.kernel, other.choice.isUnaligned,
                      other.tiles);
    }
  };
  /// A program and the voter that it is timed for.
  using AskedPrograms = std::map<ProgramKey, size_t>;
  ProgramKey programOf(ProgramChoice choice, llvm::ArrayRef<int64_t> shape);
  /// Returns the choice of a column of a matrix of votes: micro-kernels, then
  /// their variants.
  ProgramChoice choiceOf(unsigned column) const {
    auto count = static_cast<unsigned>(measured.size());
    return {column % count, column >= count};
  }
  /// Returns the useful FLOP/s of each program for each voter: as verified, or
  /// predicted and corrected by verified programs.
  VoteMatrix scoresOf(llvm::ArrayRef<Voter> voters);
  /// Returns programs that may be better than the verified ones, if predictions
  /// are as far off as the root mean square of their errors so far. These are
  /// the at most `maxRivals` programs that would gain most over all voters.
  AskedPrograms rivals(llvm::ArrayRef<Voter> voters, const VoteMatrix &scores,
                       size_t maxRivals);
  /// Returns the features of a program beside those of its block, for
  /// `residuals`.
  std::vector<float> residualFeatures(const ProgramKey &key);
  /// Trains trees on the ratios of verified to predicted times.
  llvm::Error trainResiduals();
  /// Times programs of choices. `scores` are the throughputs that were
  /// expected.
  llvm::Error verify(llvm::ArrayRef<Voter> voters, const VoteMatrix &scores,
                     const AskedPrograms &asked);
  double blocksOf(const KernelFamily &family,
                  llvm::ArrayRef<int64_t> shape) const;
  double flopsOf(llvm::ArrayRef<int64_t> shape) const;
  /// Returns f_MK of a measured micro-kernel for a grid of so many waves.
  double throughput(const TunedKernel &kernel, double waves) const;
  /// Returns `throughput` at full waves, for labels.
  double fullThroughput(const TunedKernel &kernel) const;
  /// Draws the shape whose extents bound a mutation.
  llvm::ArrayRef<int64_t> drawBounds();

  const SearchProblem &problem;
  const CodegenModel &path;
  const ContractionAxes axes;
  llvm::ArrayRef<WeightedShape> shapes;
  const DietCodeOptions options;
  Timer timer;
  bool learns;
  std::mt19937_64 random;
  DietCodeSpace space;
  int64_t alignment;
  unsigned mainAxis;
  OccupancyFactor occupancyFactor;
  double peak;

  /// All micro-kernels that were looked at.
  std::map<Key, std::unique_ptr<TunedKernel>> known;
  /// Times that were asked for in place of a model.
  std::map<const TunedKernel *, double> standIns;
  std::vector<TunedKernel> measured;
  /// Programs that have a time, of micro-kernels at the shapes where they are
  /// measured and of choices, as logs know them.
  std::set<std::string> timed;
  /// Micro-kernels that were asked for, whether they could be measured or not.
  std::set<Key> seen;
  /// A program that was measured to verify a choice.
  struct VerifiedProgram {
    Shape shape;
    /// The measured time; no value if the program failed, or could not be
    /// measured.
    std::optional<double> microseconds;
    bool failed = false;
    /// Logarithm of the useful FLOP/s found over those predicted.
    double residual = 0;
  };
  std::map<ProgramKey, VerifiedProgram> verified;
  std::vector<RaggedRun> ragged;
  /// Sum of squared logarithms of measured over expected useful FLOP/s.
  double squaredSurprises = 0;
  int64_t numSurprises = 0;
  std::map<unsigned, std::optional<KernelFamily>> unalignedVariants;
  /// Rounds in a row without a measurement: the budget is spent, or the table
  /// lacks the micro-kernels that were asked for.
  int fruitlessRounds = 0;
  std::unique_ptr<TreeTrainer> trainer;
  std::optional<BoostedTrees> model;
  /// The transferred model; no value if nothing is transferred.
  std::optional<LearnedModel> source;
  /// Trees for the logarithm of measured over predicted useful FLOP/s.
  std::optional<BoostedTrees> residuals;
};

} // namespace ftuner

#endif // FTUNER_LIB_BASELINES_DIETCODE_DIETCODETUNER_H
