//===- UKernel.cpp - uKernels, kernel families and covers -----------------===//
#include "FTuner/Search/UKernel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace ftuner;

static std::string listOf(llvm::ArrayRef<int64_t> values) {
  auto texts = llvm::map_range(
      values, [](int64_t value) { return std::to_string(value); });
  return "[" + llvm::join(texts, ",") + "]";
}

std::string UKernel::str() const {
  std::string text = listOf(smemTile) + "/" + listOf(regTile);
  if (reduceSplit != 1)
    text += "/split" + std::to_string(reduceSplit);
  return text;
}

std::string KernelFamily::str() const {
  auto texts = llvm::map_range(
      parts, [](const UKernel &ukernel) { return ukernel.str(); });
  return path + " " + llvm::join(texts, " + ") + " axis " +
         std::to_string(combineAxis) + " stages " + std::to_string(stages) +
         " vector " + std::to_string(vectorWidth);
}

Cover ftuner::coverExtent(const KernelFamily &family, int64_t extent) {
  Cover cover;
  if (extent <= 0)
    return cover;
  unsigned axis = family.combineAxis;
  if (family.parts.size() == 1) {
    int64_t height = family.parts.front().smemTile[axis];
    cover.first = ceilDiv(extent, height);
    cover.padded = cover.first * height - extent;
    return cover;
  }
  // In units of g rows: n1 · h + n2 · (h + 1) = units holds exactly when
  // n1 ≡ −units modulo h + 1, so the smallest n1 is that remainder. The next
  // solutions add h + 1, so no other is smaller.
  const UKernel &larger = family.parts.back();
  int64_t g = larger.threadsAlong(axis), high = larger.regTile[axis];
  int64_t units = ceilDiv(extent, g);
  int64_t first = (high - units % high) % high;
  if (first * (high - 1) <= units) {
    cover.first = first;
    cover.second = (units - first * (high - 1)) / high;
  } else {
    cover.second = ceilDiv(units, high);
  }
  cover.padded = g * (cover.first * (high - 1) + cover.second * high) - extent;
  return cover;
}
