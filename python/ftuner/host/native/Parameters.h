//===- Parameters.h - Calls of C functions ----------------------*- C++ -*-===//
#ifndef FTUNER_NATIVE_PARAMETERS_H
#define FTUNER_NATIVE_PARAMETERS_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace ftuner_native {

/// Parameters of a function of docs/abi.md: pointers and integers of 64 bits,
/// and floating-point scalars. The two kinds are passed apart from each other,
/// each in the order of the parameters: on x86-64 and AArch64 under Linux the
/// first eight scalars are in registers, of which a callee reads the low bits
/// of its type, and so are the first integers; further integers lie one behind
/// the other, 8 bytes each. A callee reads those that it has, so one type of
/// functions with many parameters serves all with fewer. The caller adds no
/// more than there is room for.
class Parameters {
public:
  static constexpr size_t kMaxScalars = 8, kMaxIntegers = 128;

  void add(int64_t integer) { integers[integerCount++] = integer; }
  void add(const void *pointer) { add(reinterpret_cast<intptr_t>(pointer)); }
  /// Adds a floating-point scalar by the bits of its type.
  void addScalar(uint64_t bits) {
    std::memcpy(&scalars[scalarCount++], &bits, sizeof(bits));
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
    using Pointer = Result (*)(Repeated<double, S>..., Repeated<int64_t, I>...);
    return reinterpret_cast<Pointer>(function)(scalars[S]..., integers[I]...);
  }

  // The callee reads those alone that were added.
  double scalars[kMaxScalars];
  int64_t integers[kMaxIntegers];
  size_t scalarCount = 0, integerCount = 0;
};

} // namespace ftuner_native

#endif // FTUNER_NATIVE_PARAMETERS_H
