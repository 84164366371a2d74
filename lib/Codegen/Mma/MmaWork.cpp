//===- MmaWork.cpp - What a block of the mma path executes ----------------===//
//
// Counts what MmaMainLoop.cpp and TileCopy.cpp emit for a step of the main
// loop.
//
//===----------------------------------------------------------------------===//
#include "MmaWork.h"
#include "FTuner/Codegen/TileCopyWork.h"

using namespace ftuner;

static constexpr int64_t kLanes = 32;
static constexpr int64_t kWordBytes = 4;
/// Cycles from a load of shared memory to its use.
static constexpr double kLoadCycles = 33;
/// Cycles of a barrier and of the branch back.
static constexpr double kBarrierCycles = 40;

namespace {
/// Fragments of an operand: `matrices` 8 × 8 ones that an ldmatrix loads.
struct FragmentLoads {
  const SharedTile &tile;
  int64_t matrices;
  double count;
};
} // namespace

/// Adds ldmatrix instructions. Each lane's row is 16 bytes, so that banks are
/// touched as by loads of four words; fragments differ by whole periods of the
/// swizzle, or by chunks, which patterns permute within one line.
template <typename RowOf>
static void addFragmentLoads(BlockWork &work, const MmaLayout &layout,
                             const FragmentLoads &loads, RowOf rowOf) {
  if (loads.count == 0)
    return;
  NumberMath math;
  const SharedTile &tile = loads.tile;
  std::array<int64_t, kLanes> address;
  address.fill(-1);
  for (int64_t lane = 0; lane < 8 * loads.matrices; ++lane) {
    MatrixRow<NumberMath> at = rowOf(math, layout, lane);
    uint32_t chunk = at.chunk;
    if (tile.swizzle > 1)
      chunk ^= swizzlePattern(math, tile, at.row);
    address[lane] =
        (int64_t(at.row) * tile.pitch + int64_t(chunk) * tile.chunk) *
        layout.elementBytes / kWordBytes;
  }
  addAccess(work, WarpAccess::Kind::SharedLoad, 4, address, loads.count);
  double registers = loads.count * double(loads.matrices);
  work.otherInstructions += loads.count;
  work.loadedRegisters += registers;
  // A permutation for each register.
  if (layout.transposesBytes(tile))
    work.otherInstructions += registers;
}

/// Adds loads of single elements of four bytes.
static void addElementLoads(BlockWork &work, const SharedTile &tile,
                            double count) {
  NumberMath math;
  std::array<int64_t, kLanes> address;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    LaneElement<NumberMath> element = laneElement(math, uint32_t(lane));
    address[lane] = int64_t(element.reduce) * tile.pitch + element.space;
  }
  addAccess(work, WarpAccess::Kind::SharedLoad, 1, address, count);
  work.otherInstructions += count;
  work.loadedRegisters += count;
}

/// Steps from the start of a copy to the wait for it (MainLoop.h): it starts
/// with a step, and is waited for before the last k block of one, or behind the
/// only one. What passes through registers is stored there.
static double stepsAhead(const MmaLayout &layout, const MmaCode &code) {
  auto kBlocks = double(layout.fragmentsOfStep());
  double inStep = kBlocks > 1 ? (kBlocks - 1) / kBlocks : 1;
  return inStep + (code.isAsynchronous ? double(layout.stages) - 2 : 0);
}

/// Cycles of a warp alone for a register that it rounds to tf32. ptxas 13.0
/// writes a comparison, an addition and a choice of bits for sm_80 and sm_90,
/// and there are six predicates for the comparisons, so the warp waits for each
/// six of them: the stall counts of a step of 24 × 32 × 32, 24 products and 56
/// roundings, add up to 1015 cycles, and an H200 took 1237
/// (benchmarks/results/h200-2026-11-26).
static constexpr double kRoundingCycles = 11;

/// Registers of a k block's fragments that a warp rounds.
static double roundedRegisters(const MmaLayout &layout, const MmaCode &code) {
  double registers = 0;
  for (unsigned factor : {0, 1})
    if (code.copies[factor].isRounded) {
      bool areRows = (factor == 0) != layout.isSwapped();
      registers += double(areRows ? 4 * layout.rows.fragments()
                                  : 2 * layout.columns.fragments());
    }
  return registers;
}

/// Cycles in which a warp that has its scheduler to itself issues no product.
/// Of each k block those that its loads, and what rounds them, take longer than
/// the products of the k block before: shared memory serves the loads of all
/// warps in turn. Of each step the barrier.
static double headCycles(const BlockWork &work, const MmaLayout &layout,
                         const MmaCode &code) {
  auto kBlocks = double(layout.fragmentsOfStep());
  double products = work.tensor.front().instructions /
                    (double(layout.warps()) * kBlocks) * code.cyclesOfProduct;
  double loads = 0;
  for (const WarpAccess &access : work.accesses)
    if (access.kind == WarpAccess::Kind::SharedLoad)
      loads += access.count * double(access.width);
  loads = loads / kBlocks + kLoadCycles +
          kRoundingCycles * roundedRegisters(layout, code);
  // Those of an only k block come behind its products.
  if (kBlocks == 1)
    return kBarrierCycles + loads;
  return kBarrierCycles + kBlocks * std::max(loads - products, 0.0);
}

BlockWork ftuner::mmaWork(const MmaLayout &layout, const MmaCode &code) {
  BlockWork work;
  double warps = double(layout.warps());
  work.warps = layout.warps();
  work.kTile = layout.bk;

  TensorWork tensor;
  tensor.pipe = code.instruction.pipe;
  tensor.operations = 2.0 * double(layout.groups * layout.rows.extent) *
                      double(layout.columns.extent) * double(layout.bk);
  tensor.instructions =
      tensor.operations /
      double(2 * code.instruction.rows * kMmaColumns * code.instruction.depth);
  work.tensor.push_back(tensor);

  double times = warps * double(layout.fragmentsOfStep());
  int64_t rows = layout.rows.fragments(), columns = layout.columns.fragments();
  if (layout.loadsMatrices(layout.rows.tile))
    addFragmentLoads(work, layout, {layout.rows.tile, 4, times * double(rows)},
                     rowsMatrixRow<NumberMath>);
  else
    addElementLoads(work, layout.rows.tile, 4 * times * double(rows));
  if (layout.loadsMatrices(layout.columns.tile)) {
    int64_t pairs = columns / 2, single = columns % 2;
    addFragmentLoads(work, layout,
                     {layout.columns.tile, 4, times * double(pairs)},
                     columnsMatrixRow<NumberMath>);
    addFragmentLoads(work, layout,
                     {layout.columns.tile, 2, times * double(single)},
                     columnsMatrixRow<NumberMath>);
  } else {
    addElementLoads(work, layout.columns.tile, 2 * times * double(columns));
  }

  // Loop and stages, addresses of fragments.
  work.otherInstructions += warps * (24 + 2 * double(layout.fragmentsOfStep()));
  FactorCopies copies{layout.threads(), layout.elementBytes,
                      code.isAsynchronous, code.isReduceExact};
  for (unsigned factor : {0, 1}) {
    const MmaCode::Copy &copy = code.copies[factor];
    copies.addTo(work, layout.tileOf(factor), copy);
  }
  work.otherInstructions += times * roundedRegisters(layout, code);
  work.stepsAhead = stepsAhead(layout, code);
  work.headCycles = headCycles(work, layout, code);
  return work;
}
