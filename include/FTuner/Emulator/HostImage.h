//===- HostImage.h - Kernels for the emulator, ahead of time ----*- C++ -*-===//
//
// Compiles the kernels of a compiled module for the CPU, so that a library that
// holds them runs without a GPU and without MLIR: libftrt hands them to
// libftrt_emulator (FTuner/Runtime/EmulatorInterface.h).
//
// The result is relocatable object files for the machine's object format, ELF.
// Linked together, in any order, they define one symbol of hidden visibility,
//
//     ftrt_host_image NAME;                     // FTuner/Runtime/ftrt.h
//
// which other objects of the same library refer to as the `data` of an image of
// kind FTRT_IMAGE_HOST. Every other symbol is internal, or hidden and begins
// with `NAME_`. Kernels reach the emulator through the image's table of
// functions only, so all that stays undefined is of libc and libm (memcpy,
// expf, ...): link with -lm. The code is position independent.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_EMULATOR_HOSTIMAGE_H
#define FTUNER_EMULATOR_HOSTIMAGE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include <string>
#include <vector>

namespace ftuner::emulator {

struct HostImageOptions {
  /// The symbol of the image: a C identifier.
  std::string name;
  /// LLVM's name of the processor. Empty takes a portable one: x86-64-v3 (AVX2
  /// and FMA) on x86-64, LLVM's generic one elsewhere. "native" is the one of
  /// this machine. On x86-64 it must have what x86-64-v3 has.
  std::string cpu;
  /// LLVM's subtarget features, such as "+avx512f"; added to those of the
  /// processor.
  std::string features;
};

/// Compiles every kernel of `module`, which is left unchanged: the output of
/// `ftuner-compile`, its gpu.modules at the level of the LLVM and NVVM
/// dialects. Kernels are compiled in parallel on the threads of the MLIR
/// context. The same input gives the same bytes. Registers the translations of
/// the builtin and LLVM dialects with the context.
///
/// Returns the object files. Emits an error and fails
///  * for a module without kernels, or with two kernels of one name;
///  * where an operation of a kernel has no emulation rule (Emulator.h);
///  * for a kernel without a known block size of the form (x, 1, 1);
///  * for a name that is no C identifier, and for an unknown or too old
///    processor.
mlir::FailureOr<std::vector<std::string>>
compileHostImage(mlir::ModuleOp module, const HostImageOptions &options);

} // namespace ftuner::emulator

#endif // FTUNER_EMULATOR_HOSTIMAGE_H
