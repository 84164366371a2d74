//===- FloatConversions.h - Conversions of f16 and bf16 ---------*- C++ -*-===//
#ifndef FTUNER_EMULATOR_FLOATCONVERSIONS_H
#define FTUNER_EMULATOR_FLOATCONVERSIONS_H

namespace llvm {
class Module;
class SubtargetFeatures;
class Triple;
} // namespace llvm

namespace ftuner {

/// Conversions to and from f16 and bf16. If a processor has no instructions for
/// them, code generation calls functions of compiler-rt, which not every
/// machine has. Gives code for the host, optimized already, its own:
/// internal ones, added only where values of these types occur. They round to
/// nearest, ties to even.
void addFloatConversions(llvm::Module &code);

/// Takes from a host those instructions that convert to bf16 and flush
/// subnormal numbers to zero, which a GPU keeps.
void removeFlushingConversions(const llvm::Triple &triple,
                               llvm::SubtargetFeatures &features);

} // namespace ftuner

#endif // FTUNER_EMULATOR_FLOATCONVERSIONS_H
