//===- RowReduction.cpp - Reductions of rows as nests ---------------------===//
#include "FTuner/Workload/RowReduction.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>

using namespace ftuner;
using llvm::Twine;

RowReductionView::RowReductionView(const Workload &workload)
    : workload(&workload), rowAxis(workload.reduceAxes().list().front()) {}

int64_t RowReductionView::numReductions() const {
  return llvm::count_if(
      workload->computations,
      [](const Computation &computation) { return computation.isReduction(); });
}

llvm::SmallVector<int64_t> RowReductionView::phases() const {
  llvm::SmallVector<int64_t> phases;
  for (const Computation &computation : workload->computations) {
    int64_t phase = 1;
    for (const Read &read : computation.reads)
      if (read.isComputation())
        phase = std::max(phase, phases[read.number] + 1);
    phases.push_back(computation.isReduction() ? phase : 0);
  }
  return phases;
}

int64_t RowReductionView::numPhases() const {
  return *llvm::max_element(phases());
}

bool RowReductionView::isAlong(const Operand &operand) const {
  return llvm::is_contained(operand.axes, rowAxis);
}

llvm::SmallVector<const Operand *> RowReductionView::operandsAlong() const {
  llvm::SmallVector<const Operand *> operands;
  for (const Operand &operand : workload->operands)
    if (isAlong(operand))
      operands.push_back(&operand);
  return operands;
}

bool RowReductionView::isReadByReductions(const Operand &operand) const {
  llvm::ArrayRef<Computation> computations = workload->computations;
  // Computations read earlier ones.
  llvm::SmallVector<bool> isReduced(computations.size(), false);
  for (size_t number = computations.size(); number-- > 0;) {
    const Computation &computation = computations[number];
    if (!computation.isReduction() && !isReduced[number])
      continue;
    for (const Read &read : computation.reads) {
      if (!read.isComputation()) {
        if (&workload->operands[read.number] == &operand)
          return true;
      } else if (!computations[read.number].isReduction()) {
        isReduced[read.number] = true;
      }
    }
  }
  return false;
}

int64_t RowReductionView::widestBytes() const {
  int64_t bytes = 1;
  for (const Operand *operand : operandsAlong())
    bytes = std::max(bytes, operand->elementBytes);
  return bytes;
}

int64_t RowReductionView::accumulatorBytes() const {
  int64_t bytes = 4;
  for (const Computation &computation : workload->computations)
    if (computation.isReduction())
      bytes = std::max(bytes,
                       bytesOf(computation.state->accumulators.front().type));
  return bytes;
}

unsigned RowReductionView::laneAxis() const {
  llvm::SmallVector<int64_t> bytes(workload->axes.size(), 0);
  for (const Operand *operand : operandsAlong())
    if (std::optional<unsigned> axis = operand->contiguousAxis())
      bytes[*axis] += operand->elementBytes;
  auto maxBytes = llvm::max_element(bytes);
  return bytes[rowAxis] == *maxBytes ? rowAxis : maxBytes - bytes.begin();
}

llvm::Error Workload::checkRowReduction() const {
  if (reduceAxes().size() != 1 || spaceAxes().empty())
    return llvm::createStringError("expected rows along one axis");
  for (auto [number, operand] : llvm::enumerate(operands))
    for (unsigned dim = 0; dim < operand.rank(); ++dim)
      if (!operand.position(dim).asAxis())
        return llvm::createStringError(
            "expected operand " + Twine(number) +
            " to follow one axis along each dimension");
  return llvm::Error::success();
}

std::optional<RowReductionView> Workload::asRowReduction() const {
  if (llvm::errorToBool(checkRowReduction()))
    return std::nullopt;
  return RowReductionView(*this);
}
