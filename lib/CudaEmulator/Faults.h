//===- Faults.h - Kernels that go wrong on purpose --------------*- C++ -*-===//
#ifndef FTUNER_LIB_CUDAEMULATOR_FAULTS_H
#define FTUNER_LIB_CUDAEMULATOR_FAULTS_H

#include <string>

namespace ftuner {

/// What a launch of a kernel comes to.
enum class Fault {
  None,
  Lost, ///< nothing runs, and nobody is told
  Fail, ///< the driver reports a failure
  Hang  ///< the launch does not return
};

/// The fault of a kernel by the variable FTRT_EMULATED_FAULTS: items KIND:NAME,
/// with commas between, for kernels whose names begin with NAME; KIND is lost,
/// fail or hang.
Fault faultOf(const std::string &kernel);
/// What is wrong with the variable; empty if nothing is.
const std::string &errorOfFaults();

} // namespace ftuner

#endif // FTUNER_LIB_CUDAEMULATOR_FAULTS_H
