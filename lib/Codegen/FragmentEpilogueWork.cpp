//===- FragmentEpilogueWork.cpp - What epilogues execute ------------------===//
//
// Counts what IR/FragmentEpilogue.cpp emits for a warp tile.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Codegen/FragmentEpilogueWork.h"
#include "FTuner/Codegen/ContractionModel.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace ftuner;

static constexpr int64_t kAccessBytes = 16;
/// In machine code of ptxas 13.0 for sm_80 and sm_90: of a run, its place in
/// the output, whether it lies inside, and a branch, as in tiles at the edge
/// and in a vendor's kernels (a tile inside has fewer:
/// benchmarks/tensor_cores/epilogues.md); more where each run of a lane has
/// columns of its own; addresses of a tile.
static constexpr double kInstructionsOfRun = 7, kInstructionsOfColumn = 6,
                        kInstructionsOfTile = 20;
/// Instructions of a filling of a staging tile: two waits of the warp's lanes.
static constexpr double kInstructionsOfFilling = 2;
/// More of one in a loop: the loop's own, a branch to the sums it stores, and
/// what all fillings share where they follow each other, as ptxas 13.0 counts
/// of GELU (benchmarks/tensor_cores/triton_epilogues.py).
static constexpr double kInstructionsOfTurn = 36;
/// Instructions of machine code that a special function is taken to have: erf
/// and tanh have some 20, a quotient 12 and a branch.
static constexpr double kCodeOfSpecial = 24;
/// Trips together, and instructions at most that compute them.
static constexpr int64_t kTripsTogether = 4;
static constexpr double kMostCodeTogether = 208;
/// Instructions of fillings one behind the other at most, of 16 bytes: on
/// Volta, a partition of an SM has 12 KiB of cache for instructions, and the SM
/// 128 KiB behind them (Jia et al., "Dissecting the NVIDIA Volta GPU
/// Architecture via Microbenchmarking", 2018). Fillings of fewer than these
/// would become slower by more than a sixth in a loop.
static constexpr double kMostCodeOfFillings = 1024,
                        kLeastCodeOfFilling = 6 * kInstructionsOfTurn;

namespace {
/// How an epilogue takes the sums of a warp.
struct EpilogueRuns {
  /// Sums of a lane, the runs of the staging tile, and its fillings.
  int64_t sums;
  StagingRuns staging;
  int64_t fillings;
  /// Instructions that a run executes, instructions of its machine code, and
  /// instructions that write all sums to staging tiles.
  double ofRun, codeOfRun, ofSums;
  /// True where the epilogue has operands that differ from row to row.
  bool readsRows;

  double runs() const { return double(sums) / double(staging.width); }
};
} // namespace

static EpilogueRuns runsOf(const Workload &workload, const FragmentTile &tile,
                           int64_t accessBytes) {
  ContractionView view(workload);
  int64_t leastBytes = FragmentTile::kAccumulatorBytes;
  auto isElementwise = [](const Operand &operand) {
    return operand.role == OperandRole::Output ||
           operand.role == OperandRole::Init ||
           operand.role == OperandRole::Extra;
  };
  for (const Operand &operand : workload.operands)
    if (isElementwise(operand) && operand.contiguousAxis() == view.n)
      leastBytes = std::min(leastBytes, operand.elementBytes);
  int64_t width = FragmentTile::runColumns(accessBytes, leastBytes);

  auto accessesOf = [&](int64_t elementBytes) {
    return double(ceilDiv(width * elementBytes, kAccessBytes));
  };
  double ofRun =
      accessesOf(FragmentTile::kAccumulatorBytes) + kInstructionsOfRun;
  StagingRuns staging{tile.stagingRows(), tile.stagingColumns(), width};
  if (!staging.haveColumnOfLane())
    ofRun += kInstructionsOfColumn;
  bool readsRows = false;
  for (const Operand &operand : workload.operands) {
    if (!isElementwise(operand) || operand.rank() == 0)
      continue;
    bool isOutput = operand.role == OperandRole::Output;
    bool isOfRow = llvm::is_contained(operand.axes, view.m);
    if (isOutput || isOfRow)
      ofRun += accessesOf(operand.elementBytes);
    readsRows |= isOfRow && !isOutput;
  }
  double codeOfRun = ofRun;
  for (const Operations &operations : view.epilogueOperations()) {
    ofRun += double(width) * instructionsOf(operations);
    codeOfRun +=
        double(width) * operations.count *
        (operations.unit() == OperationUnit::Special ? kCodeOfSpecial : 1);
  }
  // Pairs, or fours, are written to the staging tile, or single sums.
  double together = tile.isSwapped ? 1 : 2;
  if (tile.hasEvenColumnsFirst)
    together *= 2;
  return {tile.accumulators(),
          staging,
          tile.fillings(),
          ofRun,
          codeOfRun,
          double(tile.accumulators()) / together,
          readsRows};
}

static EpilogueCode codeOf(const EpilogueRuns &epilogue) {
  bool isLong = kTripsTogether * epilogue.codeOfRun > kMostCodeTogether;
  // Only loads gain by trips that are computed one by one.
  int64_t together = isLong && !epilogue.readsRows ? 1 : kTripsTogether;
  // Trips in a loop, those behind it, and one of some lanes.
  int64_t whole = epilogue.staging.wholeTrips(), rest = whole % together;
  int64_t trips = whole < together ? 0 : isLong ? 1 : together;
  trips += isLong ? rest > 0 : rest;
  trips += epilogue.staging.lanesOfRest() > 0;
  auto fillings = double(epilogue.fillings);
  double ofFilling =
      epilogue.ofSums / fillings + double(trips) * epilogue.codeOfRun;
  return {together, isLong,
          epilogue.fillings > 1 && ofFilling > kLeastCodeOfFilling &&
              fillings * ofFilling > kMostCodeOfFillings};
}

EpilogueCode ftuner::epilogueCode(const Workload &workload,
                                  const FragmentTile &tile,
                                  int64_t accessBytes) {
  return codeOf(runsOf(workload, tile, accessBytes));
}

bool ftuner::storesSums(const Workload &workload) {
  ContractionView view(workload);
  llvm::ArrayRef<Operations> operations = view.epilogueOperations();
  ElementType output = workload.find(OperandRole::Output)->elementType;
  const Operand *init = workload.find(OperandRole::Init);
  if (!init || init->rank() > 0 || workload.find(OperandRole::Extra))
    return false;
  if (operations.empty())
    return true;
  const Operations &only = operations.front();
  return operations.size() == 1 && only.count == 1 &&
         only.kind == OperationKind::Cast &&
         only.operandType == ElementType::F32 && only.resultType == output &&
         (output == ElementType::F16 || output == ElementType::BF16);
}

/// Instructions of the copy of a row: its place in the output and in shared
/// memory, what of it lies inside, and the copy itself.
static constexpr double kInstructionsOfBulkCopy = 24;

double ftuner::fragmentEpilogueInstructions(const Workload &workload,
                                            const FragmentTile &tile,
                                            int64_t accessBytes) {
  EpilogueRuns epilogue = runsOf(workload, tile, accessBytes);
  // Lanes copy a row each.
  double ofCopies =
      tile.bulkElementBytes
          ? kInstructionsOfBulkCopy *
                double(ceilDiv(tile.outputRows(), StagingRuns::kLanes))
          : 0;
  // Each two are rounded, and stored.
  if (tile.storesSums)
    return kInstructionsOfTile + 2 * epilogue.ofSums + ofCopies;
  double ofFilling = kInstructionsOfFilling;
  if (codeOf(epilogue).hasLoopOfFillings)
    ofFilling += kInstructionsOfTurn;
  return kInstructionsOfTile + ofCopies + epilogue.ofSums +
         epilogue.runs() * epilogue.ofRun +
         double(epilogue.fillings) * ofFilling;
}
