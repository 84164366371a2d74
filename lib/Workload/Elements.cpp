//===- Elements.cpp - Types of elements -----------------------------------===//
#include "FTuner/Workload/Elements.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

using namespace ftuner;

int64_t ftuner::bytesOf(ElementType type) {
  switch (type) {
  case ElementType::F64:
  case ElementType::I64:
  case ElementType::Other:
    return 8;
  case ElementType::F32:
  case ElementType::TF32:
  case ElementType::I32:
    return 4;
  case ElementType::F16:
  case ElementType::BF16:
  case ElementType::I16:
    return 2;
  case ElementType::I8:
  case ElementType::I1:
    return 1;
  }
  llvm_unreachable("every type has a size");
}

llvm::StringRef ftuner::nameOf(ElementType type) {
  switch (type) {
  case ElementType::F64:
    return "f64";
  case ElementType::F32:
    return "f32";
  case ElementType::TF32:
    return "tf32";
  case ElementType::F16:
    return "f16";
  case ElementType::BF16:
    return "bf16";
  case ElementType::I64:
    return "i64";
  case ElementType::I32:
    return "i32";
  case ElementType::I16:
    return "i16";
  case ElementType::I8:
    return "i8";
  case ElementType::I1:
    return "i1";
  case ElementType::Other:
    return "another type";
  }
  llvm_unreachable("every type has a name");
}

bool ftuner::isInteger(ElementType type) {
  switch (type) {
  case ElementType::I64:
  case ElementType::I32:
  case ElementType::I16:
  case ElementType::I8:
  case ElementType::I1:
    return true;
  default:
    return false;
  }
}

llvm::StringRef ftuner::nameOf(Identity identity) {
  switch (identity) {
  case Identity::Zero:
    return "zero";
  case Identity::One:
    return "one";
  case Identity::Lowest:
    return "lowest";
  case Identity::Highest:
    return "highest";
  }
  llvm_unreachable("every identity has a name");
}

llvm::ArrayRef<llvm::StringLiteral> ftuner::factorPrecisionNames() {
  static constexpr llvm::StringLiteral names[] = {"f32", "tf32",
                                                  "tf32-truncate"};
  return names;
}

std::optional<FactorPrecision>
ftuner::findFactorPrecision(llvm::StringRef name) {
  const auto *found = llvm::find(factorPrecisionNames(), name);
  if (found == factorPrecisionNames().end())
    return std::nullopt;
  return static_cast<FactorPrecision>(found - factorPrecisionNames().begin());
}
