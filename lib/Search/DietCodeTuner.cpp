//===- DietCodeTuner.cpp - Learned search of micro-kernels ----------------===//
#include "DietCodeTuner.h"
#include "FTuner/CostModel/LatencyFormulas.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Search/Candidates.h"
#include "RandomDraws.h"
#include "SearchTuning.h"
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
      axes(ContractionAxes::of(problem.workload.reduceAxes())), shapes(shapes),
      options(options), timer(std::move(timer)), learns(learns), random(seed),
      space(
          problem.workload, problem.device,
          [&] {
            Shape largest(problem.workload.axes.size(), 1);
            for (const WeightedShape &of : shapes)
              for (auto [most, extent] : llvm::zip_equal(largest, of.shape))
                most = std::max(most, extent);
            return largest;
          }(),
          options),
      alignment(reachableAlignment(problem.workload)),
      mainAxis(problem.workload.mainAxis()),
      peak(path.peakFlops(problem.workload, problem.device)) {
  occupancyFactor.form = options.occupancy;
}

//===----------------------------------------------------------------------===//
// What a micro-kernel costs
//===----------------------------------------------------------------------===//

double DietCodeTuner::flopsOf(llvm::ArrayRef<int64_t> shape) const {
  return problem.workload.flops(*problem.workload.reduction(), shape);
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
      occupancyFactor.of(blocksOf(family, shape), problem.device.smCount);
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
  if (admits && !admits(*family)) {
    ++counts.notAdmitted;
    return nullptr;
  }
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
    double most = 0, mostFlops = 0;
    for (const WeightedShape &of : shapes) {
      double share = this->share(family, of.shape), flops = flopsOf(of.shape);
      if (share < most || (share == most && flops <= mostFlops))
        continue;
      most = share;
      mostFlops = flops;
      best = &of;
    }
    return {best->shape};
  }
  KernelResources needs = path.resources(problem.workload, family);
  int64_t resident = problem.device.blocksPerSm(
      needs.threads, needs.registersPerThread, needs.sharedMemoryBytes);
  // Other axes have the extents of the largest shape; along the main one there
  // are as many blocks as come nearest.
  Shape shape = space.largest;
  shape[mainAxis] = 1;
  double beside = blocksOf(family, shape);
  int64_t tile = family.tiles.front()[mainAxis];
  std::vector<Shape> result;
  for (int64_t waves : {int64_t(1), resident}) {
    double wanted = static_cast<double>(waves * problem.device.smCount);
    auto along = static_cast<int64_t>(std::max(1.0, wanted / beside));
    shape[mainAxis] = tile * along;
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
    // What was measured in part says what it says.
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
  size_t least = source ? 1 : tuning::dietCodeLeastRows;
  if (!learns || options.model == ThroughputModel::None ||
      measured.size() < least)
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
                             static_cast<int64_t>(tuning::dietCodeLeastRows))) +
                 1;
  for (Individual &individual : population) {
    if (!individual.kernel) {
      individual.fitness = 0;
      continue;
    }
    const TunedKernel &kernel = *individual.kernel;
    double base = 1;
    if (!learns)
      base = standIns[&kernel] / peak;
    else if (model || source)
      base = std::exp((model ? model->predict(kernel.features) : 0) +
                      (source ? source->predict(kernel.features) : 0));
    double most = 0;
    for (const WeightedShape &of : shapes)
      most = std::max(most, base * share(kernel.family, of.shape));
    // Without a model every prediction of Cost_M is 1.
    bool isKnown = !learns || model || source;
    individual.fitness = isKnown ? std::pow(most, power) : 1;
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
  // By weight and work over the best throughput so far.
  std::vector<double> odds;
  double sum = 0;
  for (const WeightedShape &of : shapes) {
    sum += of.weight * flopsOf(of.shape);
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

llvm::Expected<std::vector<unsigned>> DietCodeTuner::choose(size_t most) {
  // Useful FLOP/s of what was timed for its shape; 0 for what failed.
  std::map<std::pair<size_t, unsigned>, double> verified;
  std::vector<RaggedRun> ragged;
  while (true) {
    VoteMatrix scores;
    for (auto [row, of] : llvm::enumerate(shapes)) {
      std::vector<double> &rowScores = scores.emplace_back();
      for (auto [column, kernel] : llvm::enumerate(measured)) {
        auto known = verified.find({row, unsigned(column)});
        rowScores.push_back(known != verified.end() ? known->second
                            : kernel.runs.empty()   ? 0
                                                    : score(kernel, of.shape));
      }
    }
    std::vector<unsigned> chosen;
    std::vector<size_t> asked;
    std::vector<MeasurementRequest> requests;
    for (auto [row, kernel] : llvm::enumerate(chooseByVotes(scores, most))) {
      if (!kernel)
        return llvm::createStringError(
            "strategy 'dietcode': no micro-kernel that it measured runs every "
            "shape of workload '" +
            problem.workload.name + "'");
      chosen.push_back(*kernel);
      if (!learns || verified.count({row, *kernel}))
        continue;
      asked.push_back(row);
      requests.push_back(
          {&problem.workload, measured[*kernel].family, shapes[row].shape});
    }
    if (requests.empty())
      return chosen;
    llvm::Error fatal = llvm::Error::success();
    for (auto [index, time] : llvm::enumerate(timer(requests))) {
      size_t row = asked[index];
      unsigned kernel = chosen[row];
      double expected = scores[row][kernel];
      double &found = verified[{row, kernel}];
      if (!time) {
        llvm::Error error = time.takeError();
        // What was not measured speaks against nobody.
        found = error.isA<NotMeasured>() ? expected : 0;
        counts.failed += !error.isA<NotMeasured>();
        if (error.isA<MeasurerFailed>())
          fatal = llvm::joinErrors(std::move(fatal), std::move(error));
        else
          llvm::consumeError(std::move(error));
        continue;
      }
      ++counts.verified;
      timed.insert(MeasurementLog::keyOf(requests[index]));
      verifiedTimes[{row, kernel}] = *time;
      found = flopsOf(shapes[row].shape) / (*time * 1e-6);
      counts.revoted += found * (1 + options.tolerance) < expected;
      addRaggedRun(measured[kernel], shapes[row].shape, found, ragged);
    }
    if (fatal)
      return std::move(fatal);
    if (ragged.size() >= tuning::dietCodeRaggedRuns) {
      FittedK fitted = fitK(ragged);
      occupancyFactor.k = fitted.k;
      counts.kStandardError = fitted.standardError;
    }
    counts.ragged = static_cast<int64_t>(ragged.size());
  }
}

void DietCodeTuner::addRaggedRun(const TunedKernel &kernel,
                                 llvm::ArrayRef<int64_t> shape, double found,
                                 std::vector<RaggedRun> &runs) const {
  double blocks = blocksOf(kernel.family, shape);
  double share = busyShare(blocks, problem.device.smCount);
  if (share >= tuning::dietCodeRaggedShare)
    return;
  // What the last wave alone explains.
  double occupancy = occupancyFactor.of(blocks, problem.device.smCount);
  runs.push_back({share, score(kernel, shape) / occupancy / found});
}
