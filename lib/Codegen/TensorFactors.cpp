//===- TensorFactors.cpp - Factors of the tensor cores --------------------===//
#include "FTuner/Codegen/TensorFactors.h"
#include "FTuner/Codegen/TileCopyWork.h"

#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <cmath>

using namespace ftuner;

/// Blocks that a device runs at once, one for each of its SMs, or so.
static constexpr int64_t kBlocksAtOnce = 128;
static constexpr int64_t kMaxSwizzleRows = 16;
static constexpr int64_t kWordBytes = 4;

/// Whether a factor is of the multiplied type, or all its numbers are, to which
/// it is cast on the way: integers of 8 bits to floats, and floats of 16 bits
/// to tf32, which has the range of f32 and the digits of f16.
static bool isFactorOf(ElementType multiplied, ElementType factor) {
  if (multiplied == ElementType::TF32)
    return factor == ElementType::F32 || factor == ElementType::F16 ||
           factor == ElementType::BF16 || factor == ElementType::I8;
  return factor == multiplied ||
         (factor == ElementType::I8 && bytesOf(multiplied) == 2);
}

llvm::Error ftuner::checkTensorFactors(const CodegenModel &path,
                                       const Workload &workload) {
  ElementType type = multipliedType(workload);
  for (OperandRole role : {OperandRole::Lhs, OperandRole::Rhs}) {
    const Operand &factor = *workload.find(role);
    // Prologues end in the multiplied type, wherever they begin.
    if (hasPrologue(workload, /*factor=*/role == OperandRole::Rhs))
      continue;
    if (!isFactorOf(type, factor.elementType))
      return path.invalid("expected factors of " + nameOf(type) + ", but got " +
                          nameOf(factor.elementType));
  }
  return llvm::Error::success();
}

llvm::Error ftuner::checkTensorSum(const CodegenModel &path,
                                   const Workload &workload, ElementType sum) {
  if (workload.accumulatorType() == sum)
    return llvm::Error::success();
  return path.invalid("expected an accumulator of " + nameOf(sum) +
                      ", but got " + nameOf(workload.accumulatorType()));
}

bool ftuner::convertsFactors(const Workload &workload) {
  ElementType type = multipliedType(workload);
  for (OperandRole role : {OperandRole::Lhs, OperandRole::Rhs})
    if (workload.find(role)->elementBytes != bytesOf(type) ||
        hasPrologue(workload, /*factor=*/role == OperandRole::Rhs))
      return true;
  return false;
}

bool ftuner::roundsFactor(const Workload &workload, unsigned factor) {
  OperandRole role = factor == 0 ? OperandRole::Lhs : OperandRole::Rhs;
  return multipliedType(workload) == ElementType::TF32 &&
         !workload.reduction()->operations.front().truncates &&
         (workload.find(role)->elementType == ElementType::F32 ||
          hasPrologue(workload, factor));
}

int64_t ftuner::copiedElements(const Workload &workload, int64_t accessBytes,
                               unsigned factor) {
  const Operand &operand = ContractionView(workload).factor(factor);
  return elementsWithinRun(workload, operand,
                           elementsOfCopy(accessBytes, operand.elementBytes,
                                          bytesOf(multipliedType(workload))));
}

bool ftuner::copiesAsynchronously(const DeviceSpec &device,
                                  const Workload &workload,
                                  int64_t accessBytes) {
  int64_t bytes = bytesOf(multipliedType(workload));
  int64_t fewest = std::min(copiedElements(workload, accessBytes, 0),
                            copiedElements(workload, accessBytes, 1));
  return copiesAsynchronously(device, fewest * bytes,
                              convertsFactors(workload));
}

/// The point of the loops along k of a step, and the distance that it adds to
/// pointers. With these, ptxas 13.0 spilled in none of the 405 kernels that the
/// plans for 17 convolutions have on sm_75, sm_80 and sm_90; without, 8 bytes
/// in one of them.
constexpr int64_t kWindowRegisters = 8;

/// Quotients and remainders by two constants, each by a product of 32 bits that
/// takes two instructions, a shift and a multiplication and subtraction, and
/// what they are multiplied with.
static constexpr double kSplitInstructions = 24;

/// Returns what the windows of a factor say about copies, as CopySource.cpp
/// emits them.
static WindowFacts windowFacts(const Workload &workload,
                               const Operand &factor) {
  WindowFacts facts;
  unsigned k = ContractionView(workload).k;
  const Axis &axis = workload.axes[k];
  if (axis.isFused() && axis.loops.back().range.isFixed())
    facts.lastExtent = axis.loops.back().range.min;
  if (!factor.outside)
    return facts;
  for (const AffineForm &form : factor.windows) {
    if (form.asTerm())
      continue;
    ++facts.checkedDimensions;
    for (const AffineForm::Term &term : form.terms)
      facts.checksLastLoop |=
          term.axis == k && term.loop + 1 == axis.loops.size();
  }
  return facts;
}

/// Returns the cost of windows, of which `facts` are known.
static WindowWork workOf(const SharedTile &tile, int64_t threads, int64_t width,
                         const WindowFacts &facts) {
  int64_t slots = tile.copySlots(threads, width);
  int64_t checked = facts.checkedDimensions;
  int64_t step = tile.reduceContiguous ? tile.inner : tile.outer;
  bool staysInLoop = facts.lastExtent != 0 && facts.lastExtent % step == 0;
  bool isOnePlace =
      staysInLoop && !facts.checksLastLoop && rowsOfSlot(tile, threads, width);
  // Points of the loops along k that a step works out, and slots whose places
  // it works out: the first one where all have the same pixel.
  int64_t points = staysInLoop || tile.reduceContiguous ? 1 : slots;
  int64_t places = isOnePlace ? 1 : slots;
  WindowWork work;
  // Positions of slots, sizes and strides of dimensions have 64 bits each, and
  // so has the point of a step.
  work.registers = 2 * checked * (places + 2) + kWindowRegisters;
  // Each vector has a distance of 64 bits. Where places are worked out, each
  // dimension in which they may lie outside takes a sum, a comparison and a
  // conjunction.
  work.instructions = kSplitInstructions * double(points) +
                      double(2 * slots + 4 * checked * places);
  return work;
}

WindowWork ftuner::windowWork(const Workload &workload, unsigned factor,
                              const SharedTile &tile, int64_t threads,
                              int64_t width) {
  const Operand &operand = ContractionView(workload).factor(factor);
  return operand.hasWindows()
             ? workOf(tile, threads, width, windowFacts(workload, operand))
             : WindowWork();
}

FactorCopy ftuner::factorCopy(const Workload &workload, int64_t accessBytes,
                              unsigned factor) {
  ContractionView view(workload);
  const Operand &operand = view.factor(factor);
  FactorCopy copy;
  copy.globalBytes = operand.elementBytes;
  copy.vectorWidth = copiedElements(workload, accessBytes, factor);
  copy.prologue = prologueWork(workload, factor, copy.vectorWidth);
  copy.hasWindows = operand.hasWindows();
  if (copy.hasWindows) {
    copy.isPitchKnown = false;
    copy.windows = windowFacts(workload, operand);
    return copy;
  }
  // That of rows is the product of the extents behind theirs.
  bool isBehindRow = false;
  for (unsigned axis : operand.axes) {
    if (isBehindRow)
      copy.isPitchKnown &= workload.axes[axis].range.isFixed();
    isBehindRow |= !view.isBatch(axis);
  }
  return copy;
}

/// Least registers for each vector that a thread copies in a step, but of
/// factors across k: of 200 random kernels for sm_80 to sm_90, ptxas 13.0
/// spilled none that has room for as many
/// (benchmarks/register_model/results.md). With room for fewer, unaligned
/// kernels of Llama-2-7B's projections on the a100 spilled up to 910 bytes.
constexpr int64_t kSlotRegisters = 3;
/// More for each single element where some slot is not the whole block's, or no
/// whole rows: of 100 kernels of 3 and 6 warps, which are these, ptxas spilled
/// six that had room for kSlotRegisters.
constexpr int64_t kRaggedSlotRegisters = 1;

FactorCopies::Addresses FactorCopies::addresses(const SharedTile &tile,
                                                const FactorCopy &copy,
                                                bool isClamped) const {
  int64_t slots = tile.copySlots(threads, copy.vectorWidth);
  bool areWholeRows = copiesWholeRows(tile, threads, copy.vectorWidth);
  bool isInColumn = rowsOfSlot(tile, threads, copy.vectorWidth).has_value();
  // Rows that are clamped to an extent, or permuted, are at any distance.
  bool isApart =
      copy.isPitchKnown &&
      (isInColumn || (tile.reduceContiguous && areWholeRows && !isClamped));
  int64_t pointers = isApart ? 1
                     : isInColumn && !copy.hasWindows
                         ? ceilDiv(slots, slotsOfPointer(slots))
                         : slots;
  // Where rows are whole periods of the swizzle apart, places are constants
  // apart.
  int64_t places = slots;
  if (areWholeRows)
    places = std::min(slots, slotsOfPeriod(tile, threads, copy.vectorWidth));
  return {pointers, places};
}

int64_t FactorCopies::registers(const SharedTile &tile,
                                const FactorCopy &copy) const {
  int64_t slots = tile.copySlots(threads, copy.vectorWidth);
  bool areWholeRows = copiesWholeRows(tile, threads, copy.vectorWidth);
  bool isInColumn = rowsOfSlot(tile, threads, copy.vectorWidth).has_value();
  // Conditions of rows that are not clamped take no more than their pointers
  // would.
  auto [pointers, places] =
      addresses(tile, copy, /*isClamped=*/!copy.isSpaceExact);
  // Bounds of k, of 64 bits, of each row: rows along k have one in common, and
  // those of a column are a constant apart.
  int64_t bounds = 0;
  if (!isReduceExact && !isInColumn)
    bounds = tile.reduceContiguous && areWholeRows ? 1 : slots;
  int64_t registers = 2 * pointers + places + 2 * bounds;
  if (copy.hasWindows)
    registers +=
        workOf(tile, threads, copy.vectorWidth, copy.windows).registers;
  if (isAsynchronous)
    return registers;
  // Rows along k in one tile: ptxas keeps more, though they are a constant
  // apart.
  if (!isInColumn) {
    bool isRagged = copy.vectorWidth == 1 &&
                    (!areWholeRows || tile.outer * tile.inner % threads != 0);
    int64_t ofSlot = kSlotRegisters + (isRagged ? kRaggedSlotRegisters : 0);
    registers = std::max(registers, ofSlot * slots);
  }
  // What is loaded before the products and stored behind them: as it comes, or
  // cast already.
  registers += slots * ceilDiv(copy.vectorWidth *
                                   std::max(elementBytes, copy.globalBytes),
                               kWordBytes);
  // Operations take the elements of a vector one by one, and in f32.
  if (copy.prologue.instructions > 0)
    registers += copy.vectorWidth;
  // What is read beside it along k as well; the rest before the loop, once for
  // a column.
  int64_t ofAllSteps = copy.prologue.registersOfAllSteps;
  bool isShared = !tile.reduceContiguous && areWholeRows;
  return registers + slots * (copy.prologue.registers - ofAllSteps) +
         (isShared ? 1 : slots) * ofAllSteps;
}

void FactorCopies::addTo(BlockWork &work, const SharedTile &tile,
                         const FactorCopy &copy) const {
  double copies = addTileCopies(work, tile, threads, copy.vectorWidth,
                                {copy.globalBytes, elementBytes});
  double slots = double(tile.copySlots(threads, copy.vectorWidth));
  // Of windows as if they did not overlap and nothing lay outside: which
  // elements neighbours share depends on loops that tiles do not know.
  work.globalBytes += double((copy.globalBytes + copy.prologue.globalBytes) *
                             tile.matrices * tile.outer * tile.inner);
  if (!isAsynchronous)
    work.loadedRegisters +=
        copies *
        double(ceilDiv(copy.vectorWidth * copy.globalBytes, kWordBytes));
  // Of each thread, 64 bits for a pointer; where k has a rest, whether each
  // slot takes part.
  // Slots that each have rows of one matrix lie in all matrices as in the first
  // one.
  SharedTile matrix = tile;
  if (tile.vectorsOfMatrix(copy.vectorWidth) % threads == 0)
    matrix.matrices = 1;
  auto [pointers, places] =
      addresses(matrix, copy,
                /*isClamped=*/!copy.isSpaceExact && !isAsynchronous);
  double ofAddresses =
      double(2 * pointers * (tile.matrices / matrix.matrices) + places);
  if (!isReduceExact)
    ofAddresses += 2 * slots;
  // Whether each is inside of m or n, together with what else decides.
  if (isAsynchronous && !copy.isSpaceExact)
    ofAddresses += slots;
  if (copy.hasWindows)
    ofAddresses +=
        workOf(tile, threads, copy.vectorWidth, copy.windows).instructions;
  work.otherInstructions +=
      copies * (isAsynchronous ? 1 : 2) +
      copies * double(copy.vectorWidth) * copy.prologue.instructions +
      double(work.warps) * ofAddresses;
}

int64_t ftuner::squareSwizzleRows(const KernelFamily &family) {
  const BlockTile &tile = family.tiles.back();
  ContractionAxes axes = family.contractionAxes();
  // Of a family that cannot be emitted.
  if (axes.n >= tile.size())
    return 1;
  double rows = std::sqrt(double(kBlocksAtOnce) * double(tile[axes.n]) /
                          double(std::max<int64_t>(tile[axes.m], 1)));
  return std::clamp<int64_t>(std::llround(rows), 1, kMaxSwizzleRows);
}
