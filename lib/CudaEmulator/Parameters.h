//===- Parameters.h - The parameters of a kernel ----------------*- C++ -*-===//
#ifndef FTUNER_LIB_CUDAEMULATOR_PARAMETERS_H
#define FTUNER_LIB_CUDAEMULATOR_PARAMETERS_H

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace ftuner {

/// Bytes of each parameter of an entry, in order, as its PTX declares them.
/// None if the text has no such entry, or a parameter that is not understood.
std::optional<std::vector<size_t>> readParameters(const char *ptx,
                                                  const std::string &name);

/// Values of parameters, copied.
class ParameterValues {
public:
  /// `values` as for cuLaunchKernel.
  ParameterValues(const std::vector<size_t> &sizes, void **values);
  ParameterValues(const ParameterValues &) = delete;
  ~ParameterValues();

  void **pointers() { return copies.data(); }

private:
  std::vector<void *> copies;
};

} // namespace ftuner

#endif // FTUNER_LIB_CUDAEMULATOR_PARAMETERS_H
