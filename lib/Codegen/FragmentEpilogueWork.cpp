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
/// Of a staging tile: two waits of the warp's lanes.
static constexpr double kInstructionsOfStaging = 2;

double ftuner::fragmentEpilogueInstructions(const Workload &workload,
                                            const FragmentTile &tile,
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

  auto sums = double(tile.accumulators());
  double runs = sums / double(width);
  auto accessesOf = [&](int64_t elementBytes) {
    return double(ceilDiv(width * elementBytes, kAccessBytes));
  };
  // Pairs, or fours, are written to the staging tile, or single sums.
  double together = tile.isSwapped ? 1 : 2;
  if (tile.hasEvenColumnsFirst)
    together *= 2;
  double ofRun =
      accessesOf(FragmentTile::kAccumulatorBytes) + kInstructionsOfRun;
  if (!StagingRuns{tile.stagingRows(), tile.stagingColumns(), width}
           .haveColumnOfLane())
    ofRun += kInstructionsOfColumn;
  double instructions = kInstructionsOfTile + sums / together + runs * ofRun;
  instructions += kInstructionsOfStaging *
                  double(ceilDiv(tile.outputRows(), tile.stagingRows()));
  for (const Operand &operand : workload.operands)
    if (isElementwise(operand) && operand.rank() > 0 &&
        (operand.role == OperandRole::Output ||
         llvm::is_contained(operand.axes, view.m)))
      instructions += runs * accessesOf(operand.elementBytes);
  for (const Operations &operations : view.epilogueOperations())
    instructions += sums * instructionsOf(operations);
  return instructions;
}
