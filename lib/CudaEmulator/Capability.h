//===- Capability.h - The device that the driver shows ----------*- C++ -*-===//
#ifndef FTUNER_LIB_CUDAEMULATOR_CAPABILITY_H
#define FTUNER_LIB_CUDAEMULATOR_CAPABILITY_H

#include <string>

namespace ftuner {

/// A compute capability.
struct Capability {
  int major = 9;
  int minor = 0;
  /// What is wrong with the text that it was read from; empty if nothing is.
  std::string error;
};

/// That of the environment variable FTRT_EMULATED_CAPABILITY, such as "10.0",
/// read once; 9.0 where there is none.
const Capability &givenCapability();

/// Why a device cannot run an image, in words; empty if it can. PTX runs on
/// its architecture and newer ones, a cubin on those of one major version; PTX
/// for sm_90a on 9.0 alone, and that for sm_100f on those of its major version.
/// What is no PTX and no cubin is taken for fitting.
///
/// ptxas 13 does not say in cubins that they are for an exact architecture:
/// they are taken for those of the major version.
std::string objectionTo(const void *image, const Capability &device);

} // namespace ftuner

#endif // FTUNER_LIB_CUDAEMULATOR_CAPABILITY_H
