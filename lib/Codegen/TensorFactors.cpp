//===- TensorFactors.cpp - Factors of the tensor cores --------------------===//
#include "FTuner/Codegen/TensorFactors.h"
#include "FTuner/Codegen/TileCopyWork.h"

#include "llvm/ADT/Twine.h"
#include <cmath>

using namespace ftuner;

/// Blocks that a device runs at once, one for each of its SMs, or so.
static constexpr int64_t kBlocksAtOnce = 128;
static constexpr int64_t kMaxGroupRows = 16;
static constexpr int64_t kWordBytes = 4;

static llvm::Error invalid(const CodegenModel &path, const llvm::Twine &text) {
  return llvm::createStringError(
      (path.name() + ": " + text).str(),
      std::make_error_code(std::errc::invalid_argument));
}

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
      return invalid(path, "expected factors of " + nameOf(type) +
                               ", but got " + nameOf(factor.elementType));
  }
  return llvm::Error::success();
}

llvm::Error ftuner::checkTensorSum(const CodegenModel &path,
                                   const Workload &workload, ElementType sum) {
  if (workload.accumulatorType == sum)
    return llvm::Error::success();
  return invalid(path, "expected an accumulator of " + nameOf(sum) +
                           ", but got " + nameOf(workload.accumulatorType));
}

llvm::Error ftuner::checkAccess(const CodegenModel &path, int64_t accessBytes) {
  if (accessBytes >= 1 &&
      accessBytes == (accessBytes < kWordBytes ? 1 : widestAccess(accessBytes)))
    return llvm::Error::success();
  return invalid(path, "expected accesses of 1, 4, 8 or 16 bytes, but got " +
                           llvm::Twine(accessBytes));
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
         !workload.truncatesFactors &&
         (workload.find(role)->elementType == ElementType::F32 ||
          hasPrologue(workload, factor));
}

FactorCopy ftuner::factorCopy(const Workload &workload, int64_t accessBytes,
                              unsigned factor) {
  const Operand &operand =
      *workload.find(factor == 0 ? OperandRole::Lhs : OperandRole::Rhs);
  FactorCopy copy;
  copy.globalBytes = operand.elementBytes;
  copy.vectorWidth = elementsOfCopy(accessBytes, operand.elementBytes,
                                    bytesOf(multipliedType(workload)));
  copy.prologue = prologueWork(workload, factor, copy.vectorWidth);
  return copy;
}

void FactorCopies::addTo(BlockWork &work, const SharedTile &tile,
                         const FactorCopy &copy) const {
  double copies = addTileCopies(work, tile, threads, copy.vectorWidth,
                                {copy.globalBytes, elementBytes});
  double slots = double(tile.copySlots(threads, copy.vectorWidth));
  work.globalBytes += double((copy.globalBytes + copy.prologue.globalBytes) *
                             tile.outer * tile.inner);
  if (!isAsynchronous)
    work.loadedRegisters +=
        copies *
        double(ceilDiv(copy.vectorWidth * copy.globalBytes, kWordBytes));
  // Whether each slot takes part.
  double ofSlot = isReduceExact ? 2 : 4;
  work.otherInstructions +=
      copies * (isAsynchronous ? 1 : 2) +
      copies * double(copy.vectorWidth) * copy.prologue.instructions +
      double(work.warps) * ofSlot * slots;
}

int64_t ftuner::squareGroupRows(const KernelFamily &family) {
  const BlockTile &tile = family.tiles.back();
  double rows = std::sqrt(double(kBlocksAtOnce) * double(tile[Workload::kN]) /
                          double(std::max<int64_t>(tile[Workload::kM], 1)));
  return std::clamp<int64_t>(std::llround(rows), 1, kMaxGroupRows);
}
