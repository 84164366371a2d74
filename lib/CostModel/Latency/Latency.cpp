//===- Latency.cpp - Predicted microseconds -------------------------------===//
//
// The codegen path says what a block executes (BlockWork.h), the shape says how
// many blocks there are and what they move, and LatencyFormulas.h prices both.
//
// Prices that depend on a uKernel alone are kept by uKernel: the search asks
// for each of them with many shapes, in many families.
//
//===----------------------------------------------------------------------===//
#include "FTuner/CostModel/CostModel.h"
#include "FTuner/CostModel/LatencyFormulas.h"
#include "FTuner/CostModel/LatencyLaunch.h"
#include "FTuner/CostModel/WarpAccess.h"
#include "FTuner/Workload/RowReduction.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

using namespace ftuner;

/// DRAM sectors that stores write whole or not.
static constexpr int64_t sectorBytes = 32;
/// Cycles that the TMA unit of an SM takes for a row of a box, 128 bytes, that
/// lies in the operand, and for one that lies outside. On an H200 blocks of 16
/// valid rows of 4096 f16 took 11.0, 11.0, 11.4, 13.4, 16.2 and 18.8 us with 0,
/// 16, 32, 48, 64 and 80 rows outside beside them
/// (benchmarks/results/h200-2026-11-26-2).
static constexpr double cyclesOfRow = 1.3, cyclesOfRowOutside = 5;

namespace {
/// A key that tells the work of one family's blocks from another's: the tile of
/// its last part, the height of the first (0 for one part) and its axis, and
/// the schedule. Slices run the same code, except on paths that share them out
/// themselves: for these, the key tells whether there are slices.
struct FamilyKey {
  static constexpr unsigned maxAxes = 7;
  /// Hash of the numbers and the path: tells nearly all keys apart at once.
  unsigned hash = 0;
  std::array<int32_t, maxAxes + 3 + Schedule::capacity> numbers = {};
  const CodegenModel *path = nullptr;

  bool hasNumbersOf(const FamilyKey &other) const {
    return numbers == other.numbers && path == other.path;
  }
  bool operator==(const FamilyKey &other) const {
    return hash == other.hash && hasNumbersOf(other);
  }
};

/// Keys of real families begin with a positive tile.
struct KeyInfo {
  static FamilyKey getEmptyKey() { return {0, {-1}, nullptr}; }
  static FamilyKey getTombstoneKey() { return {0, {-2}, nullptr}; }
  static unsigned getHashValue(const FamilyKey &key) { return key.hash; }
  static bool isEqual(const FamilyKey &lhs, const FamilyKey &rhs) {
    return lhs == rhs;
  }
};

/// Maximum number of shapes whose demands an evaluator keeps: several times as
/// many as a search samples, since two of one hash do not fit.
static constexpr size_t kMaxKnownShapes = 4096;

/// Demands of a shape, whichever program serves it.
struct ShapeFacts {
  /// Bytes of all elements of the batch.
  double lhsBytes = 0, rhsBytes = 0;
  /// Bytes of the output, of what is read once beside it, and of the sums of
  /// one slice.
  double storedBytes = 0, onceBytes = 0, sumBytes = 0;
  bool isOutputAligned = true;
};

class Evaluator final : public CostEvaluator {
public:
  Evaluator(const Workload &workload, const DeviceSpec &device,
            const CostModelOptions &options)
      : workload(workload), device(device), calibration(options.calibration),
        figures(latencyDevice(device)), spaceAxes(workload.spaceAxes().list()),
        reduceAxes(workload.reduceAxes().list()) {
    const Operand *lhs = workload.find(OperandRole::Lhs);
    const Operand *rhs = workload.find(OperandRole::Rhs);
    if (lhs && rhs)
      elementBytes =
          static_cast<double>(lhs->elementBytes + rhs->elementBytes) / 2;
    if (std::optional<RowReductionView> rows = workload.asRowReduction();
        rows && rows->laneAxis() == rows->row()) {
      alongAxis = rows->row();
      alongBytes = rows->widestBytes();
      isPitched =
          llvm::all_of(rows->operandsAlong(), [&](const Operand *operand) {
            return operand->isPitched || operand->elementBytes < alongBytes;
          });
    }
  }

  double score(llvm::ArrayRef<int64_t> shape, const Program &program) override {
    return scoreWith(&prices(*program.family), shape, program);
  }
  const FamilyCosts *costsOf(const KernelFamily &family) override {
    return &prices(family);
  }
  void scoreEach(llvm::ArrayRef<Program> programs,
                 llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes,
                 llvm::MutableArrayRef<double> scores) override {
    const KernelFamily *family = nullptr;
    const Prices *own = nullptr;
    for (auto [program, shape, score] :
         llvm::zip_equal(programs, shapes, scores)) {
      if (std::exchange(family, program.family) != program.family)
        own = &prices(*family);
      score = scoreWith(own, shape, program);
    }
  }
  double scoreWith(const FamilyCosts *costs, llvm::ArrayRef<int64_t> shape,
                   const Program &program) override {
    Launch launch =
        describe(shape, program, static_cast<const Prices &>(*costs));
    return -predictLatency(figures, launch.parts, launch.numParts, launch.grid,
                           constants);
  }
  CostBreakdown evaluate(llvm::ArrayRef<int64_t> shape,
                         const Program &program) override;
  std::optional<ChoiceConfidence> confidence(double first,
                                             double second) const override {
    // Scores are negated times.
    return ChoiceConfidence{choiceConfidence(calibration, -first, -second),
                            measurementGain(calibration, -first, -second)};
  }

  /// Returns the launch by value, for callers that price it themselves.
  LatencyLaunch plainLaunch(llvm::ArrayRef<int64_t> shape,
                            const Program &program) {
    Launch launch = describe(shape, program, prices(*program.family));
    LatencyLaunch plain;
    plain.numParts = launch.numParts;
    plain.grid = launch.grid;
    for (unsigned i = 0; i < launch.numParts; ++i) {
      plain.blocks[i] = std::visit(
          [](const auto &table) -> LatencyKernel { return table.block; },
          *launch.parts[i].table);
      plain.counts[i] = launch.parts[i].count;
      plain.steps[i] = launch.parts[i].steps;
    }
    return plain;
  }

private:
  struct Launch {
    LatencyPart parts[2];
    unsigned numParts = 0;
    LatencyGrid grid;
  };
  /// Prices of the parts of a family.
  struct Prices final : FamilyCosts {
    llvm::SmallVector<LatencyTable, 1> parts;
    /// Contiguous bytes of a row of each operand that a step of a part reads.
    struct Runs {
      double lhs = 0, rhs = 0;
    };
    llvm::SmallVector<Runs, 1> runs;
    bool isSwizzled = false;
    ClusterShape cluster;
    /// Launches after the first one of a family with slices.
    double laterLaunches = 1;
  };

  Launch describe(llvm::ArrayRef<int64_t> shape, const Program &program,
                  const Prices &prices);
  const Prices &prices(const KernelFamily &family);
  /// LatencyGrid::boxCycles of a launch.
  double boxCycles(const Launch &launch, llvm::ArrayRef<int64_t> shape,
                   const Program &program) const;
  /// Returns a part's block with the part's registers, and without shared
  /// memory, which belongs to the family.
  const LatencyKernel &block(const KernelFamily &family, unsigned part);
  const ShapeFacts &facts(llvm::ArrayRef<int64_t> shape);
  /// Contiguous bytes that a step reads of a row of an operand.
  double runBytes(OperandRole role, const BlockTile &tile) const;

  const Workload &workload;
  const DeviceSpec &device;
  Calibration calibration;
  const LatencyConstants &constants = calibration.constants;
  LatencyDevice figures;
  /// Blocks lie along the first two space axes, as rows and columns; others are
  /// batch axes.
  llvm::SmallVector<unsigned, 4> spaceAxes, reduceAxes;
  /// Bytes of an element of both factors on average; none without two.
  std::optional<double> elementBytes;
  /// The axis of rows that lie along memory, and the bytes of their elements.
  std::optional<unsigned> alongAxis;
  int64_t alongBytes = 0;
  /// True where the widest of their operands have padded rows.
  bool isPitched = false;
  llvm::DenseMap<FamilyKey, LatencyKernel, KeyInfo> blocks;
  /// Behind pointers: prices are large, and many hold on to them.
  llvm::DenseMap<FamilyKey, std::unique_ptr<Prices>, KeyInfo> families;
  /// The last one again, as a family is often asked for with shape after shape.
  FamilyKey lastKey = {};
  const Prices *lastPrices = nullptr;
  /// Facts of shapes, at their hash.
  struct KnownShape {
    Shape shape;
    ShapeFacts facts;
  };
  std::vector<KnownShape> knownShapes =
      std::vector<KnownShape>(kMaxKnownShapes);
};
} // namespace

/// Cycles from an SM to another of its cluster (Luo et al., "Benchmarking and
/// Dissecting the Nvidia Hopper GPU Architecture via Microbenchmarking", 2024,
/// arXiv:2402.13499): what a barrier of the cluster takes at least.
static constexpr double kClusterBarrierCycles = 180;

/// Cycles from a shuffle to the use of what it brings, and of a barrier: their
/// order is known, and no measured row tells them better.
static constexpr double kShuffleCycles = 25, kBarrierCycles = 40;

/// Returns the key of a family's part by itself, or of all its parts, without
/// its hash.
static FamilyKey numbersOf(const KernelFamily &family,
                           std::optional<unsigned> part = std::nullopt) {
  FamilyKey key;
  key.path = &family.path();
  auto narrow = [](int64_t value) { return static_cast<int32_t>(value); };
  const BlockTile &tile = family.tiles[part.value_or(family.tiles.size() - 1)];
  auto *next = key.numbers.begin();
  for (int64_t size : llvm::ArrayRef(tile).take_front(FamilyKey::maxAxes))
    *next++ = narrow(size);
  next = key.numbers.begin() + FamilyKey::maxAxes;
  bool isPair = !part && family.tiles.size() == 2;
  *next++ = isPair ? narrow(family.lowHeight()) : 0;
  *next++ = narrow(family.combineAxis);
  *next++ = family.reduceSplit > 1 && key.path->sharesOutSlices() ? 1 : 0;
  llvm::copy(family.schedule.fields(), next);
  return key;
}

static FamilyKey hashed(FamilyKey key) {
  key.hash = static_cast<unsigned>(
      llvm::hash_combine_range(key.numbers.begin(), key.numbers.end()) ^
      reinterpret_cast<uintptr_t>(key.path));
  return key;
}

/// Operations of a block by type.
static double &operationsOf(LatencyLoop &block, TensorPipe pipe) {
  switch (pipe) {
  case TensorPipe::TF32:
    return block.tf32Operations;
  case TensorPipe::F16:
    return block.f16Operations;
  case TensorPipe::I8:
    return block.i8Operations;
  }
  llvm_unreachable("unknown pipe");
}

static LatencyLoop loopOf(const BlockWork &work) {
  LatencyLoop block;
  for (const TensorWork &tensor : work.tensor) {
    block.tensorInstructions += tensor.instructions;
    block.hasPeakRate |= tensor.hasPeakRate;
    operationsOf(block, tensor.pipe) += tensor.operations;
  }
  block.isPersistent = work.isPersistent;
  block.hidesStores = work.hidesStores;
  block.loadedRegisters = work.loadedRegisters;
  block.headCycles = work.headCycles;
  return block;
}

static LatencyStream streamOf(const BlockWork &work) {
  LatencyStream block;
  block.specialOperations = work.specialOperations;
  block.storedBytes = work.storedBytes;
  block.heldSteps = work.heldSteps;
  block.laterPasses = work.laterPasses;
  block.rowLoop = work.rowLoop;
  block.commonBytes = work.commonBytes;
  block.distinctCommonBytes = work.distinctCommonBytes;
  block.runBytes = work.runBytes;
  block.syncCycles =
      kShuffleCycles * work.shuffles + kBarrierCycles * work.barriers;
  return block;
}

const LatencyKernel &Evaluator::block(const KernelFamily &family,
                                      unsigned part) {
  auto [it, isNew] = blocks.try_emplace(hashed(numbersOf(family, part)));
  LatencyKernel &kernel = it->second;
  if (!isNew)
    return kernel;
  BlockWork work = family.path().work(workload, family, part, device);
  if (work.isStreaming)
    kernel = streamOf(work);
  else
    kernel = loopOf(work);
  LatencyBlock &block = commonBlock(kernel);
  block.warps = work.warps;
  block.kTile = work.kTile;
  block.fma = work.fma;
  if (family.clusterBlocks() > 1)
    block.clusterCycles = 2 * kClusterBarrierCycles;
  block.registersPerThread = work.registersPerThread;
  block.otherInstructions = work.otherInstructions;
  block.epilogueInstructions = work.epilogueInstructions;
  block.l2Bytes = work.globalBytes;
  // No more than the whole of it.
  block.exposedLoads = 1 / std::max(work.stepsAhead, 1.0);
  double minCycles = 32 / figures.loadStoreLanes;
  for (const WarpAccess &access : work.accesses) {
    bool isShared = access.kind == WarpAccess::Kind::SharedLoad ||
                    access.kind == WarpAccess::Kind::SharedStore;
    double cycles = isShared ? wavefronts(access.address, access.width)
                             : globalLines(access.address, access.width);
    (isShared ? block.sharedCycles : block.globalLines) +=
        access.count * std::max(cycles, minCycles);
  }
  return kernel;
}

const Evaluator::Prices &Evaluator::prices(const KernelFamily &family) {
  FamilyKey key = numbersOf(family);
  if (lastPrices && key.hasNumbersOf(lastKey))
    return *lastPrices;
  std::unique_ptr<Prices> &prices = families[hashed(key)];
  lastKey = key;
  lastPrices = prices.get();
  if (prices)
    return *prices;
  prices = std::make_unique<Prices>();
  lastPrices = prices.get();
  KernelResources needs = family.path().resources(workload, family);
  double registers = 0;
  for (unsigned part = 0; part < family.tiles.size(); ++part)
    registers = std::max(registers,
                         commonBlock(block(family, part)).registersPerThread);
  for (unsigned part = 0; part < family.tiles.size(); ++part) {
    LatencyKernel priced = block(family, part);
    commonBlock(priced).registersPerThread = registers;
    commonBlock(priced).sharedMemoryBytes =
        needs.sharedMemoryBytes + device.reservedSharedMemoryBytes();
    prices->parts.push_back(tabulate(figures, priced, constants));
    prices->runs.push_back({runBytes(OperandRole::Lhs, family.tiles[part]),
                            runBytes(OperandRole::Rhs, family.tiles[part])});
  }
  prices->isSwizzled = family.path().swizzleRows(family) > 1;
  prices->cluster = family.path().cluster(family.schedule);
  prices->laterLaunches =
      static_cast<double>(family.path().laterLaunches(workload));
  return *prices;
}

const ShapeFacts &Evaluator::facts(llvm::ArrayRef<int64_t> shape) {
  size_t hash = 0;
  for (int64_t extent : shape)
    hash = (hash ^ static_cast<size_t>(extent)) * 0x9E3779B97F4A7C15;
  // The upper bits depend on every extent.
  KnownShape &known = knownShapes[(hash >> 32) % kMaxKnownShapes];
  if (llvm::ArrayRef<int64_t>(known.shape) == shape)
    return known.facts;
  known.shape.assign(shape.begin(), shape.end());
  ShapeFacts &facts = known.facts = ShapeFacts();
  for (const Operand &operand : workload.operands) {
    double bytes = static_cast<double>(operand.elementBytes) *
                   workload.elements(operand, shape);
    switch (operand.role) {
    case OperandRole::Lhs:
      facts.lhsBytes = bytes;
      break;
    case OperandRole::Rhs:
      facts.rhsBytes = bytes;
      break;
    case OperandRole::Input:
    case OperandRole::Init:
    case OperandRole::Extra:
      facts.onceBytes += bytes;
      break;
    case OperandRole::Output:
      facts.storedBytes += bytes;
      facts.sumBytes +=
          bytes / static_cast<double>(operand.elementBytes) *
          static_cast<double>(bytesOf(workload.accumulatorType()));
      if (std::optional<unsigned> axis = operand.contiguousAxis())
        facts.isOutputAligned =
            rowPitch(shape[*axis] * operand.elementBytes, operand.isPitched) %
                sectorBytes ==
            0;
      break;
    }
  }
  return facts;
}

double Evaluator::runBytes(OperandRole role, const BlockTile &tile) const {
  const Operand *operand = workload.find(role);
  if (!operand)
    operand = workload.find(OperandRole::Input);
  if (!operand)
    return sectorBytes;
  // Rows of a packed operand lie one behind the other.
  if (operand->isPacked) {
    auto [m, n, k] = ContractionAxes::forReduceAxes(workload.reduceAxes());
    return static_cast<double>(operand->elementBytes * tile[n] * tile[k]);
  }
  std::optional<unsigned> axis = operand->contiguousAxis();
  int64_t elements = axis ? tile[*axis] : 1;
  if (std::optional<int64_t> run = workload.contiguousRun(*operand))
    elements = std::min(elements, *run);
  return static_cast<double>(operand->elementBytes * elements);
}

Evaluator::Launch Evaluator::describe(llvm::ArrayRef<int64_t> shape,
                                      const Program &program,
                                      const Prices &prices) {
  const KernelFamily &family = *program.family;
  const BlockTile &any = family.tiles.front();
  const ShapeFacts &facts = this->facts(shape);
  double split = static_cast<double>(family.reduceSplit);
  // Slices divide the first reduce axis.
  int64_t steps = 1, reduceLength = 1, slices = family.reduceSplit;
  for (unsigned axis : reduceAxes) {
    int64_t length = ceilDiv(shape[axis], slices);
    steps *= ceilDiv(length, any[axis]);
    reduceLength *= length;
    slices = 1;
  }

  Launch launch;
  LatencyGrid &grid = launch.grid;
  const ClusterShape &cluster = prices.cluster;
  auto clusterBlocks = static_cast<double>(cluster.blocks);
  // Blocks along the columns are neighbours in launch order.
  unsigned axis = family.combineAxis;
  int64_t counts[] = {program.partition.first, program.partition.second};
  double combined = static_cast<double>(program.partition.blocks());
  auto blocksAlong = [&](unsigned space) {
    return space == axis
               ? combined
               : static_cast<double>(ceilDiv(shape[space], any[space]));
  };
  // Blocks with several elements of a batch make one problem of these.
  double batch = 1;
  for (unsigned space : llvm::ArrayRef(spaceAxes).drop_front(
           std::min<size_t>(spaceAxes.size(), 2)))
    batch *= blocksAlong(space);
  llvm::ArrayRef<unsigned> tiled = llvm::ArrayRef(spaceAxes).take_front(2);
  double others = split * clusterBlocks;
  for (unsigned other : spaceAxes)
    if (other != axis)
      others *= blocksAlong(other);
  double covered = 0;
  for (unsigned part = 0; part < family.tiles.size(); ++part) {
    if (counts[part] == 0)
      continue;
    covered += counts[part] * family.height(part);
    launch.parts[launch.numParts++] = {
        &prices.parts[part], counts[part] * others, static_cast<double>(steps)};
    // The larger part's, where both run.
    grid.lhsRunBytes = prices.runs[part].lhs;
    grid.rhsRunBytes = prices.runs[part].rhs;
  }
  auto place = [&](unsigned space, double &blocks, double &tile) {
    blocks = blocksAlong(space);
    tile = space == axis ? covered / combined : any[space];
    if (space != cluster.axis)
      return;
    blocks *= clusterBlocks;
    tile /= clusterBlocks;
  };
  if (tiled.size() > 1)
    place(tiled[1], grid.blocksX, grid.tileX);
  place(tiled[0], grid.blocksY, grid.tileY);
  grid.problems = batch * split;
  grid.lhsBytes = facts.lhsBytes / batch / split;
  grid.rhsBytes = facts.rhsBytes / batch / split;
  grid.outputBytes = facts.onceBytes + facts.storedBytes;
  // Of rows a slice leaves numbers, which count for nothing.
  bool hasSums = split > 1 && !family.path().sharesOutSlices();
  grid.sumBytes = hasSums ? split * facts.sumBytes : 0;
  grid.isOutputAligned = facts.isOutputAligned;
  if (alongAxis)
    grid.rowBytes = static_cast<double>(
        rowPitch(shape[*alongAxis] * alongBytes, isPitched));
  grid.isSwizzled = prices.isSwizzled;
  grid.reduceLength = static_cast<double>(reduceLength);
  if (elementBytes)
    grid.elementBytes = *elementBytes;
  grid.secondKernels = split > 1 ? prices.laterLaunches : 0;
  grid.boxCycles = boxCycles(launch, shape, program);
  return launch;
}

double Evaluator::boxCycles(const Launch &launch, llvm::ArrayRef<int64_t> shape,
                            const Program &program) const {
  const KernelFamily &family = *program.family;
  // Most shapes are larger than the tiles.
  if (llvm::all_of(family.tiles, [&](const BlockTile &tile) {
        return llvm::all_of(spaceAxes, [&](unsigned axis) {
          return shape[axis] >= tile[axis];
        });
      }))
    return 0;
  BoxRows rows = family.path().boxRows(workload, family, shape);
  if (rows.outside == 0)
    return 0;
  double blocks = 0;
  for (unsigned part = 0; part < launch.numParts; ++part)
    blocks += launch.parts[part].count;
  double cycles = cyclesOfRow * double(rows.copied - rows.outside) +
                  cyclesOfRowOutside * double(rows.outside);
  return cycles / std::clamp(blocks, 1.0, double(device.smCount));
}

namespace {
struct PredictionMember {
  const char *name;
  double LatencyPrediction::*member;
};
} // namespace

static constexpr PredictionMember termMembers[] = {
#define FTUNER_LATENCY_TERM(MEMBER, NAME) {NAME, &LatencyPrediction::MEMBER},
#include "FTuner/CostModel/LatencyRecords.def"
};

static constexpr PredictionMember figureMembers[] = {
#define FTUNER_LATENCY_FIGURE(MEMBER, NAME, VALUE)                             \
  {NAME, &LatencyPrediction::MEMBER},
#include "FTuner/CostModel/LatencyRecords.def"
};

CostBreakdown Evaluator::evaluate(llvm::ArrayRef<int64_t> shape,
                                  const Program &program) {
  Launch launch = describe(shape, program, prices(*program.family));
  LatencyPrediction time = explainLatency(
      figures, launch.parts, launch.numParts, launch.grid, constants);
  // Most launches have no second kernel, and no boxes that take long.
  auto isLeftOut = [&](double LatencyPrediction::*member) {
    return member == &LatencyPrediction::total ||
           (member == &LatencyPrediction::secondKernel &&
            launch.grid.secondKernels <= 0) ||
           (member == &LatencyPrediction::boxes && time.boxes <= 0);
  };
  CostBreakdown breakdown;
  breakdown.terms.reserve(std::size(termMembers));
  breakdown.figures.reserve(std::size(figureMembers));
  for (auto [name, member] : termMembers)
    if (!isLeftOut(member))
      breakdown.terms.push_back({name, time.*member, -1});
  for (const CostTerm &term : breakdown.terms)
    breakdown.score += term.weight * term.value;
  for (auto [name, member] : figureMembers)
    breakdown.figures.push_back({name, time.*member, 0});
  return breakdown;
}

namespace {
struct LatencyOptions {
  /// A built-in calibration or a file; empty where the device says which.
  std::string calibration;
};
} // namespace

static const OptionTable<LatencyOptions> &ownOptions() {
  static const OptionTable<LatencyOptions> table = {
      option("calibration", &LatencyOptions::calibration,
             "The cost model 'latency' takes its constants from a built-in "
             "calibration, such as 'global', or from a file; without one, the "
             "device's own, that of its die, or the global one counts")
          .file(OptionFile::Access::Read)
          .orBuiltin(builtinCalibrationNames)
          .basic(),
  };
  return table;
}

llvm::Expected<std::optional<Calibration>>
ftuner::givenCalibration(const OptionValues &given) {
  std::string name = ownOptions().read(given).calibration;
  if (name.empty())
    return std::nullopt;
  llvm::Expected<Calibration> calibration = loadCalibration(name);
  if (!calibration)
    return optionError("calibration", llvm::toString(calibration.takeError()));
  return *calibration;
}

namespace {
class LatencyCostModel final : public CostModel {
public:
  llvm::StringRef name() const override { return "latency"; }
  bool predictsTime() const override { return true; }
  OptionDecls options() const override { return ownOptions().decls(); }

  std::unique_ptr<CostEvaluator>
  createEvaluator(const Workload &workload, const DeviceSpec &device,
                  const CostModelOptions &options) const override {
    return std::make_unique<Evaluator>(workload, device, options);
  }
};
} // namespace

LatencyLaunch ftuner::describeLaunch(const Workload &workload,
                                     llvm::ArrayRef<int64_t> shape,
                                     const Program &program,
                                     const DeviceSpec &device) {
  return Evaluator(workload, device, CostModelOptions())
      .plainLaunch(shape, program);
}

namespace ftuner {
const CostModel &latencyCostModel() {
  static const LatencyCostModel model;
  return model;
}
} // namespace ftuner
