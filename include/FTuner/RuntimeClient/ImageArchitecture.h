//===- ImageArchitecture.h - Architectures as libftrt has them --*- C++ -*-===//
#ifndef FTUNER_RUNTIMECLIENT_IMAGEARCHITECTURE_H
#define FTUNER_RUNTIMECLIENT_IMAGEARCHITECTURE_H

#include "FTuner/PTX/PTX.h"
#include "FTuner/Runtime/ftrt.h"

namespace ftuner {

/// The architecture as an ftrt_image has it.
inline uint32_t toImageArchitecture(const GpuArchitecture &architecture) {
  return static_cast<uint32_t>(architecture.number) |
         (architecture.isExact ? FTRT_ARCHITECTURE_EXACT : 0);
}

} // namespace ftuner

#endif // FTUNER_RUNTIMECLIENT_IMAGEARCHITECTURE_H
