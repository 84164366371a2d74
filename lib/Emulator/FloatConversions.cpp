//===- FloatConversions.cpp - Conversions of f16 and bf16 -----------------===//
#include "FTuner/Emulator/FloatConversions.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace ftuner {

namespace {
/// Conversions as functions of LLVM IR. LLVM calls them where the processor has
/// no such instruction. `trunc` rounds to nearest, ties to even.
constexpr StringLiteral kConversions = R"(
; The exponent's bias differs by 112: a product with 2^112 is exact for all
; but infinities and NaN.
define internal float @__extendhfsf2(half %value) {
  %narrow = bitcast half %value to i16
  %bits = zext i16 %narrow to i32
  %magnitude = and i32 %bits, 32767
  %shifted = shl i32 %magnitude, 13
  %small = bitcast i32 %shifted to float
  %scaled = fmul float %small, 0x46F0000000000000
  %finite = bitcast float %scaled to i32
  %infinite = or i32 %shifted, 2139095040
  %isFinite = icmp ult i32 %magnitude, 31744
  %absolute = select i1 %isFinite, i32 %finite, i32 %infinite
  %highBit = and i32 %bits, 32768
  %sign = shl i32 %highBit, 16
  %result = or i32 %absolute, %sign
  %float = bitcast i32 %result to float
  ret float %float
}

define internal half @__truncsfhf2(float %value) {
  %bits = bitcast float %value to i32
  %magnitude = and i32 %bits, 2147483647
  ; Normal: the new bias, then half a unit of the last place, less one if even.
  %rebased = sub i32 %magnitude, 939524096
  %last = lshr i32 %rebased, 13
  %odd = and i32 %last, 1
  %up = add i32 %odd, 4095
  %raised = add i32 %rebased, %up
  %normal = lshr i32 %raised, 13
  ; Subnormal: the unit of the last place of 0.5 is the least subnormal.
  %absolute = bitcast i32 %magnitude to float
  %aligned = fadd float %absolute, 0.5
  %alignedBits = bitcast float %aligned to i32
  %subnormal = sub i32 %alignedBits, 1056964608
  %isNormal = icmp uge i32 %magnitude, 947912704
  %finite = select i1 %isNormal, i32 %normal, i32 %subnormal
  %isLarge = icmp uge i32 %magnitude, 1199566848
  %number = select i1 %isLarge, i32 31744, i32 %finite
  %isNan = icmp ugt i32 %magnitude, 2139095040
  %absoluteResult = select i1 %isNan, i32 32256, i32 %number
  %high = lshr i32 %bits, 16
  %sign = and i32 %high, 32768
  %wide = or i32 %absoluteResult, %sign
  %narrow = trunc i32 %wide to i16
  %result = bitcast i16 %narrow to half
  ret half %result
}

define internal bfloat @__truncsfbf2(float %value) {
  %bits = bitcast float %value to i32
  %high = lshr i32 %bits, 16
  %odd = and i32 %high, 1
  %up = add i32 %odd, 32767
  %raised = add i32 %bits, %up
  %rounded = lshr i32 %raised, 16
  %quiet = or i32 %high, 64
  %isNan = fcmp uno float %value, 0.0
  %wide = select i1 %isNan, i32 %quiet, i32 %rounded
  %narrow = trunc i32 %wide to i16
  %result = bitcast i16 %narrow to bfloat
  ret bfloat %result
}

; Rounds to odd: rounds towards zero, then sets the last bit if the result is
; not exact. Rounding the result once more, to f16 or bf16, equals rounding the
; double directly (S. Boldo, G. Melquiond, "Emulation of a FMA and correctly
; rounded sums", IEEE Trans. Comp. 57, 2008).
define internal float @ftuner_round_to_odd(double %value) {
  %near = fptrunc double %value to float
  %bits = bitcast float %near to i32
  %back = fpext float %near to double
  %absolute = call double @llvm.fabs.f64(double %value)
  %absoluteBack = call double @llvm.fabs.f64(double %back)
  ; fptrunc rounded away from zero: the float before it is nearer to zero.
  %isBeyond = fcmp ogt double %absoluteBack, %absolute
  %one = zext i1 %isBeyond to i32
  %towardsZero = sub i32 %bits, %one
  %isInexact = fcmp one double %back, %value
  %sticky = zext i1 %isInexact to i32
  %result = or i32 %towardsZero, %sticky
  %float = bitcast i32 %result to float
  ret float %float
}

declare double @llvm.fabs.f64(double)

; A double is rounded by way of f32. Rounding to nearest twice could round a
; tie the wrong way; rounding to odd first cannot.
define internal half @__truncdfhf2(double %value) {
  %odd = call float @ftuner_round_to_odd(double %value)
  %result = call half @__truncsfhf2(float %odd)
  ret half %result
}

define internal bfloat @__truncdfbf2(double %value) {
  %odd = call float @ftuner_round_to_odd(double %value)
  %result = call bfloat @__truncsfbf2(float %odd)
  ret bfloat %result
}
)";
} // namespace

static bool isSmallFloat(Type *type) {
  type = type->getScalarType();
  return type->isHalfTy() || type->isBFloatTy();
}

/// Returns whether values of f16 or bf16 occur.
static bool hasSmallFloats(const Module &code) {
  for (const Function &function : code) {
    if (any_of(function.args(), [](const Argument &argument) {
          return isSmallFloat(argument.getType());
        }))
      return true;
    for (const Instruction &instruction : instructions(function))
      if (isSmallFloat(instruction.getType()))
        return true;
  }
  return false;
}

void addFloatConversions(Module &code) {
  if (!hasSmallFloats(code))
    return;
  // The linker merges functions that both modules declare.
  SMDiagnostic problem;
  std::unique_ptr<Module> conversions = parseAssembly(
      MemoryBufferRef(kConversions, "conversions"), problem, code.getContext());
  if (!conversions)
    reportFatalInternalError("cannot read the conversions of f16: " +
                             problem.getMessage());
  conversions->setDataLayout(code.getDataLayout());
  conversions->setTargetTriple(code.getTargetTriple());
  // Calls of them appear when instructions are selected.
  for (StringRef name : {"__extendhfsf2", "__truncsfhf2", "__truncsfbf2",
                         "__truncdfhf2", "__truncdfbf2"})
    appendToCompilerUsed(*conversions, {conversions->getFunction(name)});
  if (Linker::linkModules(code, std::move(conversions)))
    reportFatalInternalError("cannot link the conversions of f16");
}

void removeFlushingConversions(const Triple &triple,
                               SubtargetFeatures &features) {
  if (!triple.isX86())
    return;
  // vcvtneps2bf16 treats subnormal numbers as zero, whatever MXCSR says.
  for (StringRef feature : {"avx512bf16", "avxneconvert"})
    features.AddFeature(feature, /*Enable=*/false);
}

} // namespace ftuner
