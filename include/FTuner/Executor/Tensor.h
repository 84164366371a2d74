//===- Tensor.h - Tensors in host memory ------------------------*- C++ -*-===//
//
// Plain, contiguous, row-major tensors that the executors read and write, with
// a band of known bytes around the data that shows writes outside of it.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_EXECUTOR_TENSOR_H
#define FTUNER_EXECUTOR_TENSOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace ftuner {

/// Element types that cross the host ABI; i1 is one byte, 0 or 1.
enum class DataType { F16, BF16, F32, F64, I1, I8, I16, I32, I64 };

/// MLIR's name of the type, e.g. "bf16".
llvm::StringRef getName(DataType type);
std::optional<DataType> parseDataType(llvm::StringRef name);
int64_t getByteSize(DataType type);
bool isFloat(DataType type);

/// Memory with guard bands. The base is aligned to 256 bytes, as on a GPU, plus
/// a given offset.
class GuardedBuffer {
public:
  GuardedBuffer() = default;
  /// Fills the buffer and its bands with 0xff bytes (NaN). `offset` in bytes
  /// moves the base off its alignment. Fails where memory runs out.
  static llvm::Expected<GuardedBuffer> create(int64_t bytes,
                                              int64_t offset = 0);
  char *data() const { return base; }
  int64_t size() const { return bytes; }
  /// Whether nobody wrote into the guard bands.
  bool isIntact() const;

private:
  struct Free {
    void operator()(char *memory) const;
  };
  std::unique_ptr<char, Free> memory;
  int64_t memoryBytes = 0;
  char *base = nullptr;
  int64_t bytes = 0;
};

class Tensor {
public:
  Tensor() = default;
  /// A tensor filled with 0xff bytes. Fails for sizes below 0 and where memory
  /// runs out. `offset` is that of GuardedBuffer.
  static llvm::Expected<Tensor>
  create(DataType type, llvm::ArrayRef<int64_t> shape, int64_t offset = 0);

  DataType getType() const { return type; }
  llvm::ArrayRef<int64_t> getShape() const { return shape; }
  int64_t getNumElements() const { return numElements; }
  int64_t getNumBytes() const { return buffer.size(); }
  char *data() const { return buffer.data(); }
  bool isIntact() const { return buffer.isIntact(); }
  /// E.g. "53x768xf32".
  std::string getTypeString() const;

  /// An element as a number; exact for every type but i64.
  double getDouble(int64_t index) const;
  /// Rounds once, to nearest even; for float types only.
  void setDouble(int64_t index, double value);
  /// For integer types only.
  int64_t getInteger(int64_t index) const;
  /// Keeps the low bits; for integer types only.
  void setInteger(int64_t index, int64_t value);

private:
  DataType type = DataType::F32;
  llvm::SmallVector<int64_t> shape;
  int64_t numElements = 0;
  GuardedBuffer buffer;
};

/// Seeded data: standard normal for float types, uniform small integers for the
/// others. Argument `stream` of a run has a sequence of its own.
void fillRandom(Tensor &tensor, uint64_t seed, uint64_t stream);

/// How well a result agrees with its reference.
struct Comparison {
  /// ‖result − reference‖ / ‖reference‖ (Frobenius) over the finite elements;
  /// infinite for wrong elements where the reference is zero.
  double relativeError = 0;
  /// The largest finite element over ‖reference‖, in magnitude.
  double largestShare = 0;
  /// Elements that are NaN or infinite in one of the two and not equal in the
  /// other; for integers, all elements that differ.
  int64_t numMismatches = 0;
  /// Where the first mismatch, or else the largest difference, is.
  std::string worst;

  bool isWithin(double tolerance) const {
    return numMismatches == 0 && relativeError <= tolerance;
  }
};

/// Both tensors have the same type and shape.
Comparison compare(const Tensor &result, const Tensor &reference);

/// The tolerance of a result computed in its own type, wherever its roundings
/// are: 1e-5 for f32, 2e-3 for f16, 2e-2 for bf16, 1e-12 for f64, 0 for
/// integers. FTuner/Executor/Tolerance.h knows more of a function's results.
double getDefaultTolerance(DataType type);

} // namespace ftuner

#endif // FTUNER_EXECUTOR_TENSOR_H
