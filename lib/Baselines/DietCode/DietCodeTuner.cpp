//===- DietCodeTuner.cpp - Learned search of micro-kernels ----------------===//
#include "DietCodeTuner.h"
#include "DietCodePlan.h"
#include "DietCodeTuning.h"
#include "FTuner/CostModel/WarpAccess.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Search/Ranking/Candidates.h"
#include "FTuner/Support/RandomDraws.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <numeric>

using namespace ftuner;

DietCodeTuner::DietCodeTuner(const SearchProblem &problem,
                             const CodegenModel &path,
                             llvm::ArrayRef<WeightedShape> shapes,
                             const DietCodeOptions &options, Timer timer,
                             bool learns, uint64_t seed)
    : problem(problem), path(path),
      axes(ContractionAxes::forReduceAxes(problem.workload.reduceAxes())),
      shapes(shapes), options(options), timer(std::move(timer)), learns(learns),
      random(seed), space(
                        problem.workload, problem.device,
                        [&] {
                          Shape largest(problem.workload.axes.size(), 1);
                          for (const WeightedShape &weighted : shapes)
                            for (auto [maximum, extent] :
                                 llvm::zip_equal(largest, weighted.shape))
                              maximum = std::max(maximum, extent);
                          return largest;
                        }(),
                        options),
      alignment(reachableAlignment(problem.workload)),
      mainAxis(problem.workload.mainAxis()),
      peak(path.peakFlops(problem.workload, problem.device)) {
  occupancyFactor.form = options.occupancy;
}

//===----------------------------------------------------------------------===//
// Costs of a micro-kernel
//===----------------------------------------------------------------------===//

double DietCodeTuner::flopsOf(llvm::ArrayRef<int64_t> shape) const {
  return problem.workload.flops(problem.workload.mainComputation(), shape);
}

double DietCodeTuner::blocksOf(const KernelFamily &family,
                               llvm::ArrayRef<int64_t> shape) const {
  double blocks = 1;
  for (auto [axis, extent] : llvm::enumerate(shape))
    if (!family.isReduceAxis(axis))
      blocks *=
          static_cast<double>(ceilDiv(extent, family.tiles.front()[axis]));
  return blocks;
}

double DietCodeTuner::share(const KernelFamily &family,
                            llvm::ArrayRef<int64_t> shape) const {
  double share =
      occupancyFactor.valueFor(blocksOf(family, shape), problem.device.smCount);
  for (auto [axis, extent] : llvm::enumerate(shape))
    if (options.padding && (options.padReduce || !family.isReduceAxis(axis)))
      share *= static_cast<double>(extent) /
               static_cast<double>(ceilBy(extent, family.tiles.front()[axis]));
  return share;
}

double DietCodeTuner::throughput(const TunedKernel &kernel,
                                 double waves) const {
  // By the waves of what was measured; between two, as far as it lies.
  std::map<double, double> points;
  for (const TimedRun &run : kernel.runs) {
    double blocks = blocksOf(kernel.family, run.shape);
    points[std::ceil(blocks / static_cast<double>(problem.device.smCount))] =
        flopsOf(run.shape) / (run.microseconds * 1e-6) /
        share(kernel.family, run.shape);
  }
  if (points.empty())
    return 0;
  auto above = points.lower_bound(waves);
  if (above == points.begin())
    return above->second;
  auto below = std::prev(above);
  if (above == points.end())
    return below->second;
  double part = (waves - below->first) / (above->first - below->first);
  return below->second + part * (above->second - below->second);
}

double DietCodeTuner::fullThroughput(const TunedKernel &kernel) const {
  return throughput(kernel, std::numeric_limits<double>::infinity());
}

double DietCodeTuner::score(const TunedKernel &kernel,
                            llvm::ArrayRef<int64_t> shape) const {
  double waves = std::ceil(blocksOf(kernel.family, shape) /
                           static_cast<double>(problem.device.smCount));
  return throughput(kernel, waves) * share(kernel.family, shape);
}

//===----------------------------------------------------------------------===//
// Features
//===----------------------------------------------------------------------===//

static llvm::ArrayRef<llvm::StringLiteral> blockFeatureNames() {
  static constexpr llvm::StringLiteral names[] = {
      "block_m",
      "block_n",
      "block_k",
      "block_batch",
      "register_m",
      "register_n",
      "threads",
      "threads_m",
      "threads_n",
      "strips_n",
      "shared_bytes",
      "registers",
      "resident_blocks",
      "resident_warps",
      "fma",
      "other",
      "global_bytes",
      "global_requests",
      "load_wavefronts",
      "store_wavefronts",
      "load_requests",
      "intensity_shared",
      "intensity_global",
      "epilogue",
      "alignment",
      "fma_share",
  };
  return names;
}

llvm::ArrayRef<llvm::StringLiteral> DietCodeTuner::featureNames() {
  static const std::vector<llvm::StringLiteral> names = [] {
    std::vector<llvm::StringLiteral> all;
    llvm::append_range(all, blockFeatureNames());
    llvm::append_range(all, deviceFeatureNames());
    return all;
  }();
  return names;
}

std::vector<float> DietCodeTuner::featuresOf(const KernelFamily &family) const {
  const Workload &workload = problem.workload;
  BlockWork work = path.work(workload, family, 0, problem.device);
  KernelResources needs = path.resources(workload, family);
  UKernel u = family.ukernel(0);
  double bm = u.blockTile[axes.m], bn = u.blockTile[axes.n],
         rm = u.registerTile[axes.m], rn = u.registerTile[axes.n], batch = 1;
  for (unsigned axis = 0; axis < u.blockTile.size(); ++axis)
    if (axes.isBatch(axis))
      batch *= u.blockTile[axis];
  int64_t resident = problem.device.blocksPerSm(
      needs.threads, needs.registersPerThread, needs.sharedMemoryBytes);
  double loads = 0, stores = 0, loadRequests = 0, globalRequests = 0;
  for (const WarpAccess &access : work.accesses) {
    if (access.kind == WarpAccess::Kind::GlobalLoad) {
      globalRequests += access.count;
      continue;
    }
    double fronts = access.count * wavefronts(access.address, access.width);
    bool isLoad = access.kind == WarpAccess::Kind::SharedLoad;
    (isLoad ? loads : stores) += fronts;
    if (isLoad)
      loadRequests += access.count;
  }
  auto log = [](double value) {
    return static_cast<float>(std::log2(std::max(value, 1.0)));
  };
  double threadsM = bm / rm, threadsN = bn / rn;
  std::vector<float> features = {
      log(bm), log(bn), log(u.blockTile[axes.k]), log(batch), log(rm), log(rn),
      log(needs.threads), log(threadsM), log(threadsN),
      // Strips: columns of a thread, which `DietCodeSpace` has no others.
      static_cast<float>(rn), log(needs.sharedMemoryBytes),
      static_cast<float>(needs.registersPerThread),
      static_cast<float>(resident), static_cast<float>(resident * work.warps),
      log(work.fma), log(work.otherInstructions), log(work.globalBytes),
      log(globalRequests), log(loads), log(stores), log(loadRequests),
      static_cast<float>(rm * rn / (rm + rn)),
      static_cast<float>(bm * bn / (bm + bn)), log(work.epilogueInstructions),
      static_cast<float>(family.alignment()),
      static_cast<float>(work.fma / (work.fma + work.otherInstructions + 1))};
  llvm::append_range(features, deviceFeatures(problem.device));
  return features;
}

DietCodeTuner::Key DietCodeTuner::keyOf(const MicroKernel &tiles) {
  Key key;
  for (const ThreadTile &tile : tiles)
    key.insert(key.end(), {tile.threads, tile.strips, tile.inner});
  return key;
}

const TunedKernel *DietCodeTuner::lookUp(const MicroKernel &tiles) {
  auto [it, isNew] = known.try_emplace(keyOf(tiles), nullptr);
  if (!isNew)
    return it->second.get();
  ++counts.drawn;
  std::optional<KernelFamily> family =
      path.threadFamily(problem.workload, tiles, alignment);
  if (!family || problem.isRejected(*family) || !isFeasible(problem, *family)) {
    ++counts.rejectedByPath;
    return nullptr;
  }
  if (admits && !admits(*family))
    return nullptr;
  it->second = std::make_unique<TunedKernel>(
      TunedKernel{tiles, *family, featuresOf(*family), {}});
  return it->second.get();
}

//===----------------------------------------------------------------------===//
// Measurements
//===----------------------------------------------------------------------===//

std::vector<Shape>
DietCodeTuner::shapesToMeasure(const KernelFamily &family) const {
  if (options.measureAt == MeasureAt::Instance) {
    const WeightedShape *best = nullptr;
    double bestShare = 0, bestFlops = 0;
    for (const WeightedShape &instance : shapes) {
      double share = this->share(family, instance.shape),
             flops = flopsOf(instance.shape);
      if (share < bestShare || (share == bestShare && flops <= bestFlops))
        continue;
      bestShare = share;
      bestFlops = flops;
      best = &instance;
    }
    return {best->shape};
  }
  KernelResources needs = path.resources(problem.workload, family);
  int64_t resident = problem.device.blocksPerSm(
      needs.threads, needs.registersPerThread, needs.sharedMemoryBytes);
  // Other axes have the extents of the largest shape. The main axis has the
  // number of blocks that comes nearest to the waves that are wanted.
  Shape shape = space.largest;
  shape[mainAxis] = 1;
  double blocksOfOthers = blocksOf(family, shape);
  int64_t tile = family.tiles.front()[mainAxis];
  std::vector<Shape> result;
  for (int64_t waves : {int64_t(1), resident}) {
    double wanted = static_cast<double>(waves * problem.device.smCount);
    auto blocksAlong =
        static_cast<int64_t>(std::max(1.0, wanted / blocksOfOthers));
    shape[mainAxis] = tile * blocksAlong;
    if (result.empty() || result.back() != shape)
      result.push_back(shape);
  }
  return result;
}

llvm::Error DietCodeTuner::measure(llvm::ArrayRef<const TunedKernel *> chosen) {
  std::vector<MeasurementRequest> requests;
  std::vector<size_t> first;
  for (const TunedKernel *kernel : chosen) {
    first.push_back(requests.size());
    for (Shape &shape : shapesToMeasure(kernel->family))
      requests.push_back({&problem.workload, kernel->family, std::move(shape)});
  }
  first.push_back(requests.size());
  std::vector<llvm::Expected<double>> times = timer(requests);
  llvm::Error fatal = llvm::Error::success();
  bool isFruitless = true;
  for (auto [index, kernel] : llvm::enumerate(chosen)) {
    TunedKernel result = *kernel;
    bool failed = false, isUnknown = false;
    for (size_t i = first[index]; i < first[index + 1]; ++i) {
      if (times[i]) {
        result.runs.push_back({requests[i].shape, *times[i]});
        isFruitless = false;
        timed.insert(MeasurementLog::keyOf(requests[i]));
        continue;
      }
      llvm::Error error = times[i].takeError();
      if (error.isA<NotMeasured>()) {
        isUnknown = true;
      } else {
        failed = true;
        isFruitless = false;
      }
      if (error.isA<MeasurerFailed>())
        fatal = llvm::joinErrors(std::move(fatal), std::move(error));
      else
        llvm::consumeError(std::move(error));
    }
    seen.insert(keyOf(kernel->tiles));
    counts.failed += failed;
    // A micro-kernel that was measured only in part counts as measured.
    if (failed || (isUnknown && result.runs.empty()))
      continue;
    measured.push_back(std::move(result));
    ++counts.measured;
  }
  fruitlessRounds = isFruitless ? fruitlessRounds + 1 : 0;
  return fatal;
}

LearnedModel DietCodeTuner::rowsOfMeasured() const {
  LearnedModel rows;
  for (const TunedKernel &kernel : measured) {
    double throughput = fullThroughput(kernel);
    if (throughput <= 0)
      continue;
    llvm::append_range(rows.features, kernel.features);
    rows.throughputs.push_back(throughput);
  }
  return rows;
}

TrainingRows DietCodeTuner::trainingRows() const {
  TrainingRows rows;
  rows.numFeatures = featureNames().size();
  LearnedModel own = rowsOfMeasured();
  const LearnedModel *base = source ? &*source : nullptr;
  appendRows(own, base, 1, rows);
  if (source)
    appendRows(*source, base, sourceWeight(own.size(), source->size()), rows);
  return rows;
}

llvm::Error DietCodeTuner::train() {
  size_t minRows = source ? 1 : tuning::dietCodeMinRows;
  if (!learns || options.model == ThroughputModel::None ||
      measured.size() < minRows)
    return llvm::Error::success();
  TrainingRows rows = trainingRows();
  if (rows.size() == 0)
    return llvm::Error::success();
  llvm::Expected<BoostedTrees> trees = trainer->train(rows, {});
  if (!trees)
    return trees.takeError();
  model = std::move(*trees);
  return llvm::Error::success();
}

llvm::Expected<LearnedModel>
DietCodeTuner::learned(llvm::StringRef measurer) const {
  LearnedModel result = rowsOfMeasured();
  if (!trainer || result.size() == 0)
    return llvm::createStringError("nothing was learned of workload '" +
                                   problem.workload.name + "'");
  result.device = problem.device.name;
  result.workload = problem.workload.name;
  result.measurer = measurer.str();
  if (source) {
    result.texts = source->texts;
    result.ensembles = source->ensembles;
  }
  llvm::Expected<std::string> text = trainer->trainJson(trainingRows(), {});
  if (!text)
    return text.takeError();
  llvm::Expected<BoostedTrees> trees = BoostedTrees::parse(*text);
  if (!trees)
    return trees.takeError();
  result.texts.push_back(std::move(*text));
  result.ensembles.push_back(std::move(*trees));
  return result;
}

//===----------------------------------------------------------------------===//
// Evolution
//===----------------------------------------------------------------------===//

llvm::Error DietCodeTuner::rate(std::vector<Individual> &population) {
  if (!learns) {
    // The timer stands in for a model: all that it does not know yet.
    std::vector<const TunedKernel *> asked;
    std::vector<MeasurementRequest> requests;
    for (const Individual &individual : population)
      if (individual.kernel &&
          standIns.try_emplace(individual.kernel, 0).second) {
        asked.push_back(individual.kernel);
        requests.push_back({&problem.workload, individual.kernel->family,
                            shapesToMeasure(individual.kernel->family).back()});
      }
    for (auto [index, time] : llvm::enumerate(timer(requests))) {
      if (!time) {
        llvm::consumeError(time.takeError());
        continue;
      }
      const Shape &shape = requests[index].shape;
      standIns[asked[index]] =
          flopsOf(shape) / (*time * 1e-6) / share(asked[index]->family, shape);
    }
  }
  double power = static_cast<double>(
                     ceilDiv(static_cast<int64_t>(measured.size()),
                             static_cast<int64_t>(tuning::dietCodeMinRows))) +
                 1;
  // Predicted f_MK, in FLOP/s.
  double best = 0;
  for (const TunedKernel &kernel : measured)
    best = std::max(best, fullThroughput(kernel));
  auto predicted = [&](const TunedKernel &kernel) {
    if (!learns)
      return standIns[&kernel];
    if (!model && !source)
      return peak;
    // Models predict throughput relative to the best one; without a
    // measurement, the peak stands for it.
    return (best > 0 ? best : peak) *
           std::exp((model ? model->predict(kernel.features) : 0) +
                    (source ? source->predict(kernel.features) : 0));
  };
  // Costs of a shape are relative to the best score that was measured for it.
  std::vector<double> reference(shapes.size(), peak);
  if (options.fitness == Fitness::Relative && !measured.empty())
    for (auto [instance, maxScore] : llvm::zip_equal(shapes, reference)) {
      maxScore = 0;
      for (const TunedKernel &kernel : measured)
        maxScore = std::max(maxScore, score(kernel, instance.shape));
    }
  for (Individual &individual : population) {
    if (!individual.kernel) {
      individual.fitness = 0;
      continue;
    }
    const TunedKernel &kernel = *individual.kernel;
    double throughput = predicted(kernel), bestCost = 0;
    for (auto [instance, maxScore] : llvm::zip_equal(shapes, reference))
      if (maxScore > 0)
        bestCost = std::max(bestCost, throughput *
                                          share(kernel.family, instance.shape) /
                                          maxScore);
    // Without a model every prediction of Cost_M is 1.
    bool isKnown = !learns || model || source;
    individual.fitness = isKnown ? std::pow(bestCost, power) : 1;
    ++counts.predicted;
  }
  return llvm::Error::success();
}

std::vector<DietCodeTuner::Individual> DietCodeTuner::firstGeneration() {
  std::vector<Individual> population;
  size_t wanted = tuning::dietCodeFirst;
  int fruitless = 0;
  while (population.size() < wanted) {
    size_t before = population.size();
    for (size_t i = 0; i < tuning::dietCodeFirst; ++i) {
      std::optional<MicroKernel> tiles = space.sample(random);
      if (!tiles || !space.isLegal(*tiles))
        continue;
      if (const TunedKernel *kernel = lookUp(*tiles))
        population.push_back({*tiles, kernel});
    }
    fruitless = population.size() == before ? fruitless + 1 : 0;
    if (fruitless == 5) {
      fruitless = 0;
      wanted /= 2;
    }
  }
  std::vector<const TunedKernel *> best;
  for (const TunedKernel &kernel : measured)
    best.push_back(&kernel);
  llvm::stable_sort(best, [&](const TunedKernel *a, const TunedKernel *b) {
    return fullThroughput(*a) > fullThroughput(*b);
  });
  auto kept = static_cast<size_t>(tuning::dietCodeKept *
                                  static_cast<double>(best.size()));
  for (const TunedKernel *kernel : llvm::ArrayRef(best).take_front(kept))
    population.push_back({kernel->tiles, lookUp(kernel->tiles)});
  return population;
}

llvm::ArrayRef<int64_t> DietCodeTuner::drawBounds() {
  // Shapes are drawn in proportion to their weight and FLOPs.
  std::vector<double> odds;
  double sum = 0;
  for (const WeightedShape &instance : shapes) {
    sum += instance.weight * flopsOf(instance.shape);
    odds.push_back(sum);
  }
  double drawn = drawUnit(random) * sum;
  size_t index = llvm::lower_bound(odds, drawn) - odds.begin();
  return shapes[std::min(index, shapes.size() - 1)].shape;
}

std::vector<DietCodeTuner::Individual>
DietCodeTuner::nextGeneration(llvm::ArrayRef<Individual> parents) {
  std::vector<double> odds;
  double sum = 0;
  for (const Individual &parent : parents) {
    sum += parent.fitness;
    odds.push_back(sum);
  }
  std::vector<Individual> population;
  while (population.size() < tuning::dietCodePopulation) {
    size_t index =
        sum > 0 ? llvm::upper_bound(odds, drawUnit(random) * sum) - odds.begin()
                : drawBelow(parents.size(), random);
    const Individual &parent = parents[std::min(index, parents.size() - 1)];
    if (drawUnit(random) >= tuning::dietCodeMutation) {
      population.push_back(parent);
      continue;
    }
    MicroKernel child = space.mutate(parent.tiles, drawBounds(), random);
    if (!space.isLegal(child)) {
      std::optional<MicroKernel> drawn = space.sample(random);
      if (!drawn)
        continue;
      child = std::move(*drawn);
    }
    population.push_back({child, lookUp(child)});
  }
  return population;
}

llvm::Error DietCodeTuner::run() {
  if (learns && options.model == ThroughputModel::Trees) {
    llvm::Expected<std::unique_ptr<TreeTrainer>> opened = TreeTrainer::open();
    if (!opened)
      return opened.takeError();
    trainer = std::move(*opened);
  }
  auto isNew = [&](const Individual &individual) {
    return individual.kernel && !seen.count(keyOf(individual.tiles));
  };
  while (static_cast<int64_t>(seen.size()) < options.trials) {
    ++counts.rounds;
    std::vector<Individual> population = firstGeneration();
    if (population.empty())
      break;
    // The fittest ever, each once, by fitness.
    std::map<Key, Individual> best;
    for (int generation = 0; generation <= tuning::dietCodeGenerations;
         ++generation) {
      if (llvm::Error error = rate(population))
        return error;
      for (const Individual &individual : population)
        if (isNew(individual))
          best.try_emplace(keyOf(individual.tiles), individual);
      if (generation < tuning::dietCodeGenerations)
        population = nextGeneration(population);
    }
    std::vector<Individual> fittest;
    for (auto &entry : best)
      fittest.push_back(std::move(entry.second));
    // Without a model all are alike: in an order that is drawn.
    for (size_t i = fittest.size(); i > 1; --i)
      std::swap(fittest[i - 1], fittest[drawBelow(i, random)]);
    llvm::stable_sort(fittest, [](const Individual &a, const Individual &b) {
      return a.fitness > b.fitness;
    });
    size_t wanted =
        std::min<size_t>(tuning::dietCodeBatch,
                         options.trials - static_cast<int64_t>(seen.size()));
    auto numRandom = static_cast<size_t>(
        std::ceil(tuning::dietCodeRandom * static_cast<double>(wanted)));
    std::vector<const TunedKernel *> batch;
    for (const Individual &individual :
         llvm::ArrayRef(fittest).take_front(wanted - numRandom))
      batch.push_back(individual.kernel);
    for (const Individual &individual : firstGeneration())
      if (batch.size() < wanted && isNew(individual) &&
          !llvm::is_contained(batch, individual.kernel))
        batch.push_back(individual.kernel);
    for (const Individual &individual : fittest)
      if (batch.size() < wanted &&
          !llvm::is_contained(batch, individual.kernel))
        batch.push_back(individual.kernel);
    // The space is measured whole.
    if (batch.empty())
      break;
    if (llvm::Error error = measure(batch))
      return error;
    if (fruitlessRounds == tuning::dietCodeFruitless)
      break;
    if (llvm::Error error = train())
      return error;
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

DietCodeTuner::ProgramKey
DietCodeTuner::programOf(ProgramChoice choice, llvm::ArrayRef<int64_t> shape) {
  ProgramKey key{choice, {}};
  const BlockTile &tile = familyOf(choice).tiles.front();
  for (auto [axis, extent] : llvm::enumerate(shape))
    key.tiles.push_back(ceilDiv(extent, tile[axis]));
  return key;
}

const std::optional<KernelFamily> &DietCodeTuner::unalignedOf(unsigned kernel) {
  auto [it, isNew] = unalignedVariants.try_emplace(kernel);
  if (isNew)
    it->second = ftuner::unalignedOf(problem, measured[kernel].family);
  return it->second;
}

std::optional<double> DietCodeTuner::microseconds(llvm::ArrayRef<int64_t> shape,
                                                  ProgramChoice choice) {
  auto it = verified.find(programOf(choice, shape));
  if (!learns || it == verified.end() ||
      llvm::ArrayRef<int64_t>(it->second.shape) != shape)
    return std::nullopt;
  return it->second.microseconds;
}

/// Returns the nearness of two shapes: 1 for equal ones, less than 0.1 if their
/// extents differ by a factor of four.
static double nearness(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b) {
  double square = 0;
  for (auto [x, y] : llvm::zip_equal(a, b)) {
    double steps = std::log2(static_cast<double>(x) / static_cast<double>(y));
    square += steps * steps;
  }
  return std::exp(-square / 2);
}

VoteMatrix DietCodeTuner::scoresOf(llvm::ArrayRef<Voter> voters) {
  bool isMixed = llvm::any_of(
      voters, [](const Voter &voter) { return voter.isUnaligned; });
  size_t numColumns = measured.size() * (isMixed ? 2 : 1);
  // Verified programs of each micro-kernel (column), and of all.
  std::vector<std::vector<const VerifiedProgram *>> own(numColumns);
  std::vector<const VerifiedProgram *> all[2];
  std::vector<bool> hasFailed(numColumns);
  for (const auto &[key, program] : verified) {
    size_t column =
        key.choice.kernel + (key.choice.isUnaligned ? measured.size() : 0);
    if (column >= numColumns)
      continue;
    if (program.failed)
      hasFailed[column] = true;
    if (!program.microseconds)
      continue;
    own[column].push_back(&program);
    all[key.choice.isUnaligned].push_back(&program);
  }
  bool corrects = options.votes == Votes::Near;
  // The residual that all micro-kernels share: predicted by trees, or without
  // trees the mean of verified programs, weighted by nearness to the shape.
  std::map<ProgramKey, double> known;
  auto commonAt = [&](const ProgramKey &key, const Shape &shape) {
    auto [it, isNew] = known.try_emplace(key, 0);
    if (!isNew || !corrects)
      return it->second;
    if (residuals) {
      it->second = residuals->predict(residualFeatures(key));
    } else {
      double sum = 0, weights = 1;
      for (const VerifiedProgram *program : all[key.choice.isUnaligned]) {
        double weight = nearness(shape, program->shape);
        sum += weight * program->residual;
        weights += weight;
      }
      it->second = sum / weights;
    }
    return it->second;
  };
  VoteMatrix scores;
  for (const Voter &voter : voters) {
    std::vector<double> &row = scores.emplace_back(numColumns, 0.0);
    for (unsigned column = 0; column < numColumns; ++column) {
      ProgramChoice choice = choiceOf(column);
      const TunedKernel &kernel = measured[choice.kernel];
      if (kernel.runs.empty() || hasFailed[column] ||
          (voter.isUnaligned && !choice.isUnaligned) ||
          (choice.isUnaligned && !unalignedOf(choice.kernel)))
        continue;
      ProgramKey key = programOf(choice, voter.shape);
      if (auto it = verified.find(key);
          it != verified.end() && it->second.microseconds) {
        row[column] = flopsOf(voter.shape) / (*it->second.microseconds * 1e-6);
        continue;
      }
      double residual = commonAt(key, voter.shape);
      if (corrects && !own[column].empty()) {
        // Verified programs of this micro-kernel add their own residual.
        double sum = 0, weights = 0.1;
        for (const VerifiedProgram *program : own[column]) {
          double weight = nearness(voter.shape, program->shape);
          sum += weight *
                 (program->residual -
                  commonAt(programOf(choice, program->shape), program->shape));
          weights += weight;
        }
        residual += sum / weights;
      }
      row[column] = score(kernel, voter.shape) * std::exp(residual);
    }
  }
  return scores;
}

std::vector<float> DietCodeTuner::residualFeatures(const ProgramKey &key) {
  std::vector<float> features = measured[key.choice.kernel].features;
  const KernelFamily &family = familyOf(key.choice);
  double blocks = 1;
  for (auto [axis, count] : llvm::enumerate(key.tiles)) {
    features.push_back(static_cast<float>(
        std::log2(static_cast<double>(count * family.tiles.front()[axis]))));
    if (!family.isReduceAxis(axis))
      blocks *= static_cast<double>(count);
  }
  auto sms = static_cast<double>(problem.device.smCount);
  features.push_back(static_cast<float>(std::log2(blocks)));
  features.push_back(static_cast<float>(std::log2(std::ceil(blocks / sms))));
  features.push_back(
      static_cast<float>(busyShare(blocks, problem.device.smCount)));
  features.push_back(key.choice.isUnaligned);
  return features;
}

llvm::Error DietCodeTuner::trainResiduals() {
  size_t numVerified = llvm::count_if(verified, [](const auto &entry) {
    return entry.second.microseconds.has_value();
  });
  if (!trainer || options.votes != Votes::Near ||
      numVerified < tuning::dietCodeResidualRows)
    return llvm::Error::success();
  TrainingRows rows;
  auto add = [&](const ProgramKey &key, double residual) {
    std::vector<float> features = residualFeatures(key);
    rows.numFeatures = features.size();
    llvm::append_range(rows.features, features);
    rows.labels.push_back(static_cast<float>(residual));
    rows.weights.push_back(1);
  };
  // A shape at which f_MK was measured has a residual of 0.
  for (unsigned index = 0; index < measured.size(); ++index)
    for (const TimedRun &run : measured[index].runs)
      add(programOf({index, false}, run.shape), 0);
  for (const auto &[key, program] : verified)
    if (program.microseconds)
      add(key, program.residual);
  TreeOptions own;
  own.maxDepth = tuning::dietCodeResidualDepth;
  own.eta = 0.1;
  own.maxRounds = tuning::dietCodeResidualTrees;
  own.minChildWeight = 2;
  llvm::Expected<BoostedTrees> trees = trainer->train(rows, own);
  if (!trees)
    return trees.takeError();
  residuals = std::move(*trees);
  return llvm::Error::success();
}

llvm::Error DietCodeTuner::verify(llvm::ArrayRef<Voter> voters,
                                  const VoteMatrix &scores,
                                  const AskedPrograms &asked) {
  std::vector<MeasurementRequest> requests;
  for (const auto &[key, row] : asked)
    requests.push_back(
        {&problem.workload, familyOf(key.choice), voters[row].shape});
  llvm::Error fatal = llvm::Error::success();
  for (auto [request, entry, time] :
       llvm::zip_equal(requests, asked, timer(requests))) {
    const auto &[key, row] = entry;
    const TunedKernel &kernel = measured[key.choice.kernel];
    VerifiedProgram &program = verified[key];
    program.shape = voters[row].shape;
    if (!time) {
      llvm::Error error = time.takeError();
      // A missing measurement does not count against the program.
      program.failed = !error.isA<NotMeasured>();
      counts.failed += program.failed;
      if (error.isA<MeasurerFailed>())
        fatal = llvm::joinErrors(std::move(fatal), std::move(error));
      else
        llvm::consumeError(std::move(error));
      continue;
    }
    ++counts.verified;
    timed.insert(MeasurementLog::keyOf(request));
    program.microseconds = *time;
    double found = flopsOf(program.shape) / (*time * 1e-6);
    unsigned column =
        key.choice.kernel + (key.choice.isUnaligned ? measured.size() : 0);
    counts.revoted += found * (1 + options.tolerance) < scores[row][column];
    double surprise = std::log(found / scores[row][column]);
    squaredSurprises += surprise * surprise;
    ++numSurprises;
    if (!key.choice.isUnaligned)
      addRaggedRun(kernel, program.shape, found);
  }
  if (fatal)
    return fatal;
  if (ragged.size() >= tuning::dietCodeRaggedRuns) {
    FittedK fitted = fitK(ragged);
    occupancyFactor.k = fitted.k;
    counts.kStandardError = fitted.standardError;
  }
  counts.ragged = static_cast<int64_t>(ragged.size());
  // Residuals are relative to what the new k predicts.
  for (auto &[key, program] : verified)
    if (program.microseconds)
      program.residual =
          std::log(flopsOf(program.shape) / (*program.microseconds * 1e-6) /
                   score(measured[key.choice.kernel], program.shape));
  return trainResiduals();
}

DietCodeTuner::AskedPrograms DietCodeTuner::rivals(llvm::ArrayRef<Voter> voters,
                                                   const VoteMatrix &scores,
                                                   size_t maxRivals) {
  struct Rival {
    double gain = 0;
    size_t row = 0;
  };
  std::map<ProgramKey, Rival> found;
  // The factor by which a program may be faster than expected.
  double hope = std::exp(std::sqrt(
      squaredSurprises / std::max(1.0, static_cast<double>(numSurprises))));
  for (auto [row, voter] : llvm::enumerate(voters)) {
    double best = 0;
    std::vector<std::pair<unsigned, ProgramKey>> unknown;
    double minScore = *llvm::max_element(scores[row]) / hope;
    for (unsigned column = 0; column < scores[row].size(); ++column) {
      double score = scores[row][column];
      if (score < minScore || score == 0)
        continue;
      ProgramKey key = programOf(choiceOf(column), voter.shape);
      if (verified.count(key))
        best = std::max(best, score);
      else
        unknown.push_back({column, std::move(key)});
    }
    for (auto &[column, key] : unknown) {
      double hoped = scores[row][column] * hope;
      if (hoped <= best)
        continue;
      auto [it, isNew] = found.try_emplace(std::move(key), Rival{0, row});
      it->second.gain += voter.weight * (1 - best / hoped);
      if (flopsOf(voters[it->second.row].shape) < flopsOf(voter.shape))
        it->second.row = row;
    }
  }
  std::vector<std::pair<ProgramKey, Rival>> sorted(found.begin(), found.end());
  llvm::stable_sort(sorted, [](const auto &a, const auto &b) {
    return a.second.gain > b.second.gain;
  });
  AskedPrograms asked;
  for (auto &[key, rival] : llvm::ArrayRef(sorted).take_front(maxRivals))
    asked[key] = rival.row;
  return asked;
}

llvm::Expected<std::vector<ProgramChoice>>
DietCodeTuner::choose(llvm::ArrayRef<Voter> voters, size_t maxKernels,
                      bool triesRivals) {
  int64_t rivalsLeft = 0;
  if (triesRivals)
    rivalsLeft = static_cast<int64_t>(tuning::dietCodeRivals *
                                      static_cast<double>(options.trials));
  while (true) {
    VoteMatrix scores = scoresOf(voters);
    std::vector<ProgramChoice> chosen;
    // Each program is timed once, for the largest shape that chose it.
    AskedPrograms asked;
    for (auto [row, column] :
         llvm::enumerate(chooseByVotes(scores, maxKernels, options.votes))) {
      if (!column)
        return llvm::createStringError(
            "strategy 'dietcode': no micro-kernel that it measured runs every "
            "shape of workload '" +
            problem.workload.name + "'");
      ProgramChoice choice = choiceOf(*column);
      chosen.push_back(choice);
      const Shape &shape = voters[row].shape;
      ProgramKey key = programOf(choice, shape);
      if (verified.count(key))
        continue;
      auto [it, isNew] = asked.try_emplace(std::move(key), row);
      if (!isNew && flopsOf(voters[it->second].shape) < flopsOf(shape))
        it->second = row;
    }
    if (asked.empty() && rivalsLeft > 0) {
      asked = rivals(voters, scores,
                     std::min<size_t>(rivalsLeft, tuning::dietCodeBatch));
      rivalsLeft -= static_cast<int64_t>(asked.size());
    }
    if (asked.empty())
      return chosen;
    if (llvm::Error error = verify(voters, scores, asked))
      return std::move(error);
  }
}

llvm::Expected<std::vector<unsigned>> DietCodeTuner::choose(size_t maxKernels) {
  std::vector<Voter> voters;
  for (const WeightedShape &instance : shapes)
    voters.push_back({instance});
  llvm::Expected<std::vector<ProgramChoice>> choices =
      choose(voters, maxKernels);
  if (!choices)
    return choices.takeError();
  std::vector<unsigned> kernels;
  for (ProgramChoice choice : *choices)
    kernels.push_back(choice.kernel);
  return kernels;
}

void DietCodeTuner::addRaggedRun(const TunedKernel &kernel,
                                 llvm::ArrayRef<int64_t> shape, double found) {
  double blocks = blocksOf(kernel.family, shape);
  double share = busyShare(blocks, problem.device.smCount);
  if (share >= tuning::dietCodeRaggedShare)
    return;
  // The slowdown that the last wave explains, without f_pad and f_MK.
  double occupancy = occupancyFactor.valueFor(blocks, problem.device.smCount);
  ragged.push_back({share, score(kernel, shape) / occupancy / found});
}
