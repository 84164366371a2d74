//===- Arguments.h - Arguments of a run -------------------------*- C++ -*-===//
//
// From the text of `--args` and the function's type to the values of a run.
//
//   items    := [item (',' item)*]      one for each argument of the function
//   item     := tensor ['@' file]       a tensor; seeded data without a file
//             | number                  a scalar, e.g. 3 or -0.75
//   tensor   := (size 'x')* type        e.g. 53x768xf32; just f32 has rank 0
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_EXECUTOR_ARGUMENTS_H
#define FTUNER_EXECUTOR_ARGUMENTS_H

#include "FTuner/Executor/Tensor.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Support/LLVM.h"
#include <vector>

namespace ftuner {

/// The type of an argument or result of a function.
struct SignatureType {
  bool isTensor = false;
  /// The tensor's elements, or the scalar; index is i64.
  DataType type = DataType::F32;
  /// ShapedType::kDynamic for sizes that a run decides.
  llvm::SmallVector<int64_t> shape;
  /// Symbol of each dimension, empty where it has none (`ukernel.shape`).
  llvm::SmallVector<std::string> symbols;
};

/// A function as its caller sees it: on tensors, whatever it is lowered to.
struct Signature {
  std::string name;
  std::vector<SignatureType> arguments;
  std::vector<SignatureType> results;
};

/// The signature of a function on tensors, or of a compiled one, which keeps it
/// in the attribute `ukernel.abi_type`. Reports types that cannot cross the
/// host ABI.
mlir::FailureOr<Signature> getSignature(mlir::FunctionOpInterface function);

/// One argument of a run.
struct ArgumentValue {
  bool isTensor = false;
  Tensor tensor;
  /// A scalar is stored as its type is in memory, in the low bytes.
  DataType scalarType = DataType::F32;
  uint64_t scalarBits = 0;

  /// The scalar as a number; for float types only.
  double getScalarDouble() const;
};

struct ArgumentOptions {
  uint64_t seed = 0;
  /// Bytes by which tensors are moved off their alignment.
  int64_t offset = 0;
};

/// Checks `text` against the signature: the number of items, their kinds,
/// types, ranks and static sizes, that dimensions with one symbol are equal and
/// that scalars fit their type. Errors name the argument.
llvm::Error checkArguments(llvm::StringRef text, const Signature &signature);

/// Checks likewise, then loads or makes up the data.
llvm::Expected<std::vector<ArgumentValue>>
parseArguments(llvm::StringRef text, const Signature &signature,
               const ArgumentOptions &options);

/// The dynamic sizes in the order of the host ABI, then the scalars' bits.
struct AbiValues {
  std::vector<int64_t> sizes;
  std::vector<uint64_t> scalars;
};
AbiValues getAbiValues(const Signature &signature,
                       llvm::ArrayRef<ArgumentValue> arguments);

} // namespace ftuner

#endif // FTUNER_EXECUTOR_ARGUMENTS_H
