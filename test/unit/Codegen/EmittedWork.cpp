//===- EmittedWork.cpp - What `work` says, beside the PTX -----------------===//
#include "EmittedWork.h"

#include <algorithm>

using namespace ftuner;

using Kind = WarpAccess::Kind;

static constexpr uint64_t kLhs = uint64_t(1) << 40, kRhs = uint64_t(2) << 40,
                          kOutput = uint64_t(3) << 40;
/// A multiple of a line, and far beyond all tiles.
static constexpr int64_t kRows = 8192;
static constexpr int64_t kLineBytes = 128, kWordBytes = 4;

std::string ftuner::describe(const Patterns &patterns) {
  std::string text;
  for (const auto &[pattern, count] : patterns) {
    text += std::to_string(static_cast<int>(pattern.kind)) + " of " +
            std::to_string(pattern.width) + " x" + std::to_string(count) + ":";
    for (int64_t word : pattern.address)
      text += " " + std::to_string(word);
    text += "\n";
  }
  return text;
}

double Step::memoryInstructions(bool isAsync) const {
  double sum = 0;
  for (const auto &[pattern, count] : patterns)
    if (!isAsync || pattern.kind != Kind::SharedStore)
      sum += count;
  return sum;
}

double ftuner::median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void EmittedWork::TearDown() {
  if (ratios.empty())
    return;
  auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  RecordProperty("least", std::to_string(*least));
  RecordProperty("most", std::to_string(*most));
}

bool EmittedWork::isLegal(const EmittedCase &emitted) {
  llvm::Error error = emitted.family.path().check(
      emitted.workload(), emitted.family, deviceOf(emitted));
  bool isLegal = !error;
  llvm::consumeError(std::move(error));
  return isLegal;
}

/// Shifts the least address to 0; idle lanes stay negative.
static void shiftToZero(std::array<int64_t, 32> &address) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int64_t word : address)
    if (word >= 0)
      least = std::min(least, word);
  for (int64_t &word : address)
    if (word >= 0)
      word -= least;
}

/// Shifts the line that the first lane reads from to 0; idle lanes stay
/// negative.
static void shiftToLine(std::array<int64_t, 32> &address) {
  constexpr int64_t lineWords = kLineBytes / kWordBytes;
  const int64_t *first =
      llvm::find_if(address, [](int64_t word) { return word >= 0; });
  if (first == address.end())
    return;
  int64_t origin = *first / lineWords * lineWords;
  for (int64_t &word : address)
    if (word >= 0)
      word -= origin;
}

Step EmittedWork::predict(const EmittedCase &emitted, unsigned part) {
  BlockWork work = emitted.family.path().work(
      emitted.workload(), emitted.family, part, deviceOf(emitted));
  Step step;
  step.fma = work.fma;
  for (const TensorWork &tensor : work.tensor)
    step.mma += tensor.instructions;
  step.other = work.otherInstructions;
  for (const WarpAccess &access : work.accesses) {
    Pattern pattern{access.kind, access.width, access.address};
    if (access.kind == Kind::GlobalLoad)
      shiftToLine(pattern.address);
    else
      shiftToZero(pattern.address);
    step.patterns[pattern] += access.count;
  }
  return step;
}

namespace {

/// A block that computes a tile of a part, the first one along the other axis.
struct PlacedBlock {
  PlacedBlock(const EmittedCase &emitted, unsigned part);

  int64_t number = 0, numBlocks = 0;
  TileOffsets<NumberArithmetic> offsets;
};

/// Adds the events of a warp to a step.
class StepCounter {
public:
  StepCounter(const EmittedCase &emitted, const BlockTile &tile,
              const TileOffsets<NumberArithmetic> &offsets)
      : emitted(emitted), tile(tile), offsets(offsets),
        bytes(bytesOf(emitted.multiplied)) {}

  void add(const PtxEvent &event);

  Step step;

private:
  using Addresses = std::array<int64_t, 32>;
  void addShared(Kind kind, int64_t bytes, const Addresses &addresses);
  void addGlobal(int64_t bytes, const Addresses &addresses);
  void addAccess(Kind kind, int64_t bytes, const Addresses &words) {
    ++step.patterns[{kind, std::max<int64_t>(bytes / kWordBytes, 1), words}];
  }

  const EmittedCase &emitted;
  const BlockTile &tile;
  const TileOffsets<NumberArithmetic> &offsets;
  /// Of an element.
  int64_t bytes;
};

} // namespace

PlacedBlock::PlacedBlock(const EmittedCase &emitted, unsigned part) {
  NumberArithmetic math;
  Grid grid = gridOf(emitted.family);
  llvm::SmallVector<int64_t> extents = {kRows, emitted.n, emitted.k};
  if (emitted.batch != 0)
    extents.push_back(emitted.batch);
  // One tile of the first part.
  bool isPair = grid.secondHeight != 0;
  int64_t first = grid.tile[grid.combineAxis];
  int64_t tiles =
      isPair ? 1 + ceilDiv(extents[grid.combineAxis] - first, grid.secondHeight)
             : ceilDiv(extents[grid.combineAxis], first);
  numBlocks = tiles * blocksBeside<NumberArithmetic>(math, grid, extents);
  unsigned other =
      grid.combineAxis == matmulAxes.m ? matmulAxes.n : matmulAxes.m;
  for (; number < numBlocks; ++number) {
    auto position = positionOf<NumberArithmetic>(math, grid, extents, number,
                                                 [&] { return numBlocks; });
    if (position.along(math, grid, grid.combineAxis) != part ||
        position.along(math, grid, other) != 0)
      continue;
    offsets = offsetsOf(math, grid, position,
                        part == 0 ? std::nullopt : std::optional<int64_t>(1));
    return;
  }
}

void StepCounter::addShared(Kind kind, int64_t bytes,
                            const Addresses &addresses) {
  Addresses words;
  for (auto [word, address] : llvm::zip_equal(words, addresses))
    word =
        address < 0 ? -1 : (address - PtxInterpreter::sharedBase) / kWordBytes;
  shiftToZero(words);
  addAccess(kind, bytes, words);
}

/// Rows and elements of rows of the tile, rows starting at lines.
void StepCounter::addGlobal(int64_t accessBytes, const Addresses &addresses) {
  bool isLhs = addresses[0] < static_cast<int64_t>(kRhs);
  bool isReduceContiguous =
      isLhs ? !emitted.transposeLhs : emitted.transposeRhs;
  int64_t space = isLhs ? kRows : emitted.n;
  int64_t pitch = isReduceContiguous ? emitted.k : space;
  int64_t lineElements = kLineBytes / bytes;
  int64_t tilePitch = ceilBy(tile[isReduceContiguous ? matmulAxes.k
                                  : isLhs            ? matmulAxes.m
                                                     : matmulAxes.n],
                             lineElements);
  Addresses words;
  for (auto [word, address] : llvm::zip_equal(words, addresses)) {
    word = -1;
    if (address < 0)
      continue;
    int64_t element =
        (address - static_cast<int64_t>(isLhs ? kLhs : kRhs)) / bytes;
    int64_t row = element / pitch, column = element % pitch;
    // As if matrices lay one behind the other.
    if (emitted.isBatched(isLhs ? 0 : 1)) {
      int64_t rows = isReduceContiguous ? space : emitted.k;
      int64_t ofTile = tile[!isReduceContiguous ? matmulAxes.k
                            : isLhs             ? matmulAxes.m
                                                : matmulAxes.n];
      int64_t matrix = row / rows;
      row %= rows;
      row = isReduceContiguous ? row - (isLhs ? offsets.row : offsets.column)
                               : row % ofTile;
      row += matrix * ofTile;
    }
    if (isReduceContiguous)
      column %= tile[matmulAxes.k];
    else
      column -= isLhs ? offsets.row : offsets.column;
    word = (row * tilePitch + column) * bytes / kWordBytes;
  }
  shiftToLine(words);
  addAccess(Kind::GlobalLoad, accessBytes, words);
}

void StepCounter::add(const PtxEvent &event) {
  llvm::StringRef opcode = event.opcode;
  if (opcode.starts_with("fma.")) {
    ++step.fma;
    return;
  }
  if (opcode.starts_with("mma.")) {
    ++step.mma;
    return;
  }
  ++step.other;
  step.commits += opcode.starts_with("cp.async.commit");
  step.sizedCopies += event.isSized;
  step.waits += opcode.starts_with("cp.async.wait");
  if (opcode.starts_with("ld.shared") || opcode.starts_with("ldmatrix")) {
    addShared(Kind::SharedLoad, event.bytes, event.address);
  } else if (opcode.starts_with("st.shared")) {
    addShared(Kind::SharedStore, event.bytes, event.address);
  } else if (opcode.starts_with("ld.global")) {
    addGlobal(event.bytes, event.address);
  } else if (event.bytes > 0) {
    addShared(Kind::SharedStore, event.bytes, event.address);
    addGlobal(event.bytes, event.source);
  }
}

/// What the warps of a block execute from one of its first `barriers` barriers
/// to the next; empty with a failure where something is wrong.
std::vector<std::vector<PtxPhase>>
EmittedWork::run(const EmittedCase &emitted, unsigned part,
                 TileOffsets<NumberArithmetic> &offsets, unsigned barriers) {
  llvm::Expected<EmittedPtx> kernel = emit(*context, emitted);
  if (!kernel) {
    ADD_FAILURE() << llvm::toString(kernel.takeError());
    return {};
  }
  llvm::Expected<PtxInterpreter> ptx = PtxInterpreter::parse(kernel->ptx);
  if (!ptx) {
    ADD_FAILURE() << llvm::toString(ptx.takeError());
    return {};
  }
  int64_t n = emitted.n, k = emitted.k;
  std::map<std::string, uint64_t> values = {
      {"lhs", kLhs},
      {"rhs", kRhs},
      {"output", kOutput},
      {"m", kRows},
      {"n", n},
      {"k", k},
      {"lhs_stride0", emitted.transposeLhs ? kRows : k},
      {"rhs_stride0", emitted.transposeRhs ? k : n},
      {"output_stride0", n},
      {"first_part_blocks", 1}};
  if (emitted.batch != 0) {
    auto moveStride = [&](const char *row, const char *batch, int64_t rows) {
      values[row] = std::exchange(values[batch], values[batch] * rows);
    };
    if (emitted.isBatched(0))
      moveStride("lhs_stride1", "lhs_stride0",
                 emitted.transposeLhs ? k : kRows);
    if (emitted.isBatched(1))
      moveStride("rhs_stride1", "rhs_stride0", emitted.transposeRhs ? n : k);
    moveStride("output_stride1", "output_stride0", kRows);
  }
  std::vector<uint64_t> parameters;
  for (const std::string &name : kernel->parameters) {
    if (!values.count(name)) {
      ADD_FAILURE() << "unknown parameter " << name;
      return {};
    }
    parameters.push_back(values[name]);
  }
  PlacedBlock placed(emitted, part);
  if (placed.number == placed.numBlocks) {
    ADD_FAILURE() << "no block computes part " << part;
    return {};
  }
  PtxBlockOfLaunch block{static_cast<unsigned>(placed.number),
                         static_cast<unsigned>(placed.numBlocks), parameters};

  offsets = placed.offsets;
  std::vector<std::vector<PtxPhase>> ofWarps;
  for (unsigned warp = 0; warp < kernel->threads / 32; ++warp) {
    llvm::Expected<std::vector<PtxPhase>> phases =
        ptx->run(block, warp, barriers);
    if (!phases) {
      ADD_FAILURE() << llvm::toString(phases.takeError());
      return {};
    }
    ofWarps.push_back(std::move(*phases));
  }
  return ofWarps;
}

std::optional<Step> EmittedWork::observe(const EmittedCase &emitted,
                                         unsigned part) {
  TileOffsets<NumberArithmetic> offsets;
  auto ofWarps = run(emitted, part, offsets, /*barriers=*/3);
  if (ofWarps.empty())
    return std::nullopt;
  StepCounter counter(emitted, emitted.family.tiles[part], offsets);
  for (const std::vector<PtxPhase> &phases : ofWarps) {
    if (phases.size() != 4) {
      ADD_FAILURE() << "expected 3 barriers";
      return std::nullopt;
    }
    // From a barrier to the next: the second step.
    for (const PtxEvent &event : phases[2])
      counter.add(event);
  }
  return counter.step;
}

std::optional<double> EmittedWork::observeEpilogue(const EmittedCase &emitted,
                                                   unsigned part) {
  // The main loop's barriers, one before it among them, and one behind it;
  // others are those of a warp's lanes.
  constexpr int64_t steps = 2;
  constexpr unsigned before = steps + 2, most = 512;
  EmittedCase few = emitted;
  few.k = steps * emitted.family.tiles[part][matmulAxes.k];
  TileOffsets<NumberArithmetic> offsets;
  double events = 0;
  for (const std::vector<PtxPhase> &phases : run(few, part, offsets, most)) {
    if (phases.size() <= before || phases.size() == most + 1) {
      ADD_FAILURE() << "expected " << before << " to " << most << " barriers";
      return std::nullopt;
    }
    for (const PtxPhase &phase : llvm::ArrayRef(phases).drop_front(before))
      events += double(phase.size());
  }
  return events;
}
