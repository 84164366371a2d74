//===- ClusterKernels.h - Text of kernels for clusters ----------*- C++ -*-===//
#ifndef FTUNER_TEST_UNIT_EMULATOR_CLUSTERKERNELS_H
#define FTUNER_TEST_UNIT_EMULATOR_CLUSTERKERNELS_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ftuner::emulator {

inline std::string replaceAll(std::string text, const std::string &from,
                              const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
       at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

inline std::string number(uint64_t value) {
  return std::to_string(static_cast<int64_t>(value));
}

/// Constants of 32 bits by their names.
inline std::string
makeConstants(const std::vector<std::pair<const char *, uint64_t>> &constants) {
  std::string text;
  for (auto [name, value] : constants)
    text += "%" + std::string(name) + " = llvm.mlir.constant(" + number(value) +
            " : i32) : i32\n";
  return text;
}

/// Attributes of a kernel with clusters of so many blocks.
inline std::string clusterOf(unsigned blocks) {
  return "gpu.kernel, nvvm.kernel, nvvm.cluster_dim = array<i32: " +
         number(blocks) + ", 1, 1>";
}

/// A barrier of the cluster.
inline const std::string kMeet = "nvvm.cluster.arrive {aligned}\n"
                                 "nvvm.cluster.wait {aligned}\n";

} // namespace ftuner::emulator

#endif // FTUNER_TEST_UNIT_EMULATOR_CLUSTERKERNELS_H
