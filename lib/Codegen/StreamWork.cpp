//===- StreamWork.cpp - Instructions of memory-bound kernels --------------===//
#include "FTuner/Codegen/StreamWork.h"
#include <algorithm>

using namespace ftuner;

static constexpr int64_t kWarpSize = 32;

double ftuner::functionsOf(const Computation &computation) {
  double count = 0;
  for (const Operations &operations : computation.operations)
    if (operations.kind == OperationKind::Function)
      count += operations.count;
  return count;
}

ElementInstructions ftuner::instructionsOf(const Computation &computation,
                                           double known, const SmFacts &sm) {
  // Special functions go to a unit of a quarter of the rate, and take some
  // instructions around them, most of the f32 lanes.
  constexpr double kSpecialInstructions = 8, kSpecialFma = 6;
  // Casts of f64 of an SM in a cycle, where multiply-adds are not fewer (CUDA
  // C++ Programming Guide, arithmetic throughput).
  constexpr int64_t kDoubleCasts = 16;
  auto slotsPer = [&](int64_t lanes) {
    return static_cast<double>(sm.issueSlots * kWarpSize) /
           static_cast<double>(lanes);
  };
  double arithmetic = 0, specials = 0, doubles = 0;
  for (const Operations &entry : computation.operations) {
    bool isDouble = entry.operandType == ElementType::F64 ||
                    entry.resultType == ElementType::F64;
    bool isSpecial = entry.unit() == OperationUnit::Special;
    // A multiply-add is one instruction.
    double instructions =
        entry.kind == OperationKind::MultiplyAdd ? entry.count : entry.flops();
    if (isDouble && entry.kind == OperationKind::Cast)
      doubles += entry.count * slotsPer(std::min(kDoubleCasts, sm.doubleLanes));
    else if (isDouble)
      doubles +=
          (isSpecial ? kSpecialInstructions * entry.count : instructions) *
          slotsPer(sm.doubleLanes);
    else if (isSpecial)
      specials += entry.count;
    else
      arithmetic += instructions;
  }
  specials = std::max(specials - std::min(known, functionsOf(computation)), 0.);
  return {arithmetic + kSpecialFma * specials,
          arithmetic + kSpecialInstructions * specials + doubles, specials};
}
