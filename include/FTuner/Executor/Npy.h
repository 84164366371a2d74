//===- Npy.h - NumPy's array files ------------------------------*- C++ -*-===//
#ifndef FTUNER_EXECUTOR_NPY_H
#define FTUNER_EXECUTOR_NPY_H

#include "FTuner/Executor/Tensor.h"

namespace ftuner {

/// Reads a file of NumPy's format (version 1 to 3, C order, little endian) that
/// must hold exactly a tensor of this type and shape. bf16 is read from uint16,
/// which holds its bits; integers from signed or unsigned ones; i1 from bool.
/// `offset` is that of GuardedBuffer.
llvm::Expected<Tensor> readNpy(llvm::StringRef path, DataType type,
                               llvm::ArrayRef<int64_t> shape,
                               int64_t offset = 0);

/// The content of such a file, in version 1 of the format.
std::string formatNpy(const Tensor &tensor);

} // namespace ftuner

#endif // FTUNER_EXECUTOR_NPY_H
