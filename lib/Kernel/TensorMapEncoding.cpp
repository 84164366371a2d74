//===- TensorMapEncoding.cpp - What encodes a tensor map ------------------===//
//
// Source of the numbers: cuda.h of CUDA 12.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Kernel/TensorMapEncoding.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ftuner;

/// CUtensorMapDataType. Copies keep all bits, but of tf32, to which they round.
static uint32_t elementTypeOf(Type type) {
  enum : uint32_t {
    UInt8 = 0,
    UInt16 = 1,
    Int32 = 3,
    Int64 = 5,
    Float16 = 6,
    Float32 = 7,
    Float64 = 8,
    BFloat16 = 9,
    TFloat32 = 11
  };
  if (isa<FloatTF32Type>(type))
    return TFloat32;
  unsigned bits = type.getIntOrFloatBitWidth();
  switch (bits) {
  case 8:
    return UInt8;
  case 16:
    return type.isF16() ? Float16 : type.isBF16() ? BFloat16 : UInt16;
  case 32:
    return type.isF32() ? Float32 : Int32;
  case 64:
    return type.isF64() ? Float64 : Int64;
  }
  llvm_unreachable("expected elements of 8, 16, 32 or 64 bits");
}

TensorMapEncoding ftuner::encodingOf(ukernel::TensorMapAttr map, Type type) {
  TensorMapEncoding encoding;
  encoding.elementType = elementTypeOf(type);
  encoding.rank = map.getBox().size();
  encoding.box.fill(1);
  llvm::copy(map.getBox(), encoding.box.begin());
  // CUtensorMapSwizzle: 1 is 32 bytes. CUtensorMapL2promotion: 1 is 64 bytes.
  if (int64_t bytes = map.getSwizzleBytes())
    encoding.swizzle = llvm::Log2_64(bytes / 32) + 1;
  if (int64_t bytes = map.getL2PromotionBytes())
    encoding.l2Promotion = llvm::Log2_64(bytes / 64) + 1;
  return encoding;
}
