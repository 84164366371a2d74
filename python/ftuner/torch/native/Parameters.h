//===- Parameters.h - Calls of C functions ----------------------*- C++ -*-===//
#ifndef FTUNER_TORCH_PARAMETERS_H
#define FTUNER_TORCH_PARAMETERS_H

#include "PyTorch.h"

namespace ftuner_torch {

/// Parameters of a function of docs/abi.md: pointers and sizes of 64 bits, and
/// scalars of f32. The two kinds are passed apart from each other, each in the
/// order of the parameters: on x86-64 and AArch64 under Linux the first eight
/// scalars are in registers, and so are the first integers; further integers
/// lie one behind the other, 8 bytes each. A callee reads those that it has, so
/// one type of functions with many parameters serves all with fewer.
class Parameters {
public:
  static constexpr size_t kMaxScalars = 8;
  static constexpr size_t kMaxIntegers = 128;

  void add(const void *pointer) { add(reinterpret_cast<intptr_t>(pointer)); }
  void add(int64_t size) {
    if (integerCount == kMaxIntegers)
      fail("expected at most " + std::to_string(kMaxIntegers) +
           " pointers and sizes");
    integers[integerCount++] = size;
  }
  void add(float scalar) {
    if (scalarCount == kMaxScalars)
      fail("expected at most " + std::to_string(kMaxScalars) + " scalars");
    scalars[scalarCount++] = scalar;
  }

  template <typename Result>
  Result call(void *function) const {
    if (integerCount <= kFewIntegers)
      return call<Result>(function, std::make_index_sequence<kMaxScalars>(),
                          std::make_index_sequence<kFewIntegers>());
    return call<Result>(function, std::make_index_sequence<kMaxScalars>(),
                        std::make_index_sequence<kMaxIntegers>());
  }

private:
  static constexpr size_t kFewIntegers = 24;

  template <typename Type, size_t>
  using Repeated = Type;

  template <typename Result, size_t... S, size_t... I>
  Result call(void *function, std::index_sequence<S...>,
              std::index_sequence<I...>) const {
    using Pointer = Result (*)(Repeated<float, S>..., Repeated<int64_t, I>...);
    return reinterpret_cast<Pointer>(function)(scalars[S]..., integers[I]...);
  }

  float scalars[kMaxScalars] = {};
  int64_t integers[kMaxIntegers] = {};
  size_t scalarCount = 0, integerCount = 0;
};

} // namespace ftuner_torch

#endif // FTUNER_TORCH_PARAMETERS_H
