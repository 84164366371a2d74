//===- StreamWork.h - Instructions of memory-bound kernels ------*- C++ -*-===//
#ifndef FTUNER_CODEGEN_STREAMWORK_H
#define FTUNER_CODEGEN_STREAMWORK_H

#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Workload/Computation.h"

namespace ftuner {

/// Warp instructions for an element of each lane: `fma` on the f32 lanes, `all`
/// of them, and `specials`, the operations of the special function units.
struct ElementInstructions {
  double fma = 0, all = 0, specials = 0;
};

/// Functions of the dialect math that a computation calls at each point.
double functionsOf(const Computation &computation);

/// Returns the instructions of a computation for each element. `known`
/// functions of the same elements are left in registers by an earlier
/// computation, as the exponentials of a softmax's sum are for its values. An
/// operation in f64, or a cast from or to f64, counts as the instructions that
/// the schedulers issue while the warp has the units of f64.
ElementInstructions instructionsOf(const Computation &computation, double known,
                                   const SmFacts &sm);

} // namespace ftuner

#endif // FTUNER_CODEGEN_STREAMWORK_H
